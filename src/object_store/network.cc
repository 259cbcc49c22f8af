#include "src/object_store/network.h"

#include <algorithm>
#include <cctype>

namespace sluice::object_store {

std::string_view HttpAnswer::header(std::string_view name) const {
  const auto is_same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  for (const auto& [known, value] : headers)
    if (std::equal(known.begin(), known.end(), name.begin(), name.end(), is_same)) return value;
  return {};
}

}  // namespace sluice::object_store
