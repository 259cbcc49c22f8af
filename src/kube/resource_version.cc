#include "src/kube/resource_version.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace sluice::kube {
namespace {

bool is_number(std::string_view text) {
  if (text.empty() || text.front() == '0') return text == "0";
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_older_version(std::string_view a, std::string_view b) {
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::string resource_version_of(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  const auto version = metadata->find("resourceVersion");
  return version != metadata->end() && version->is_string() ? version->get<std::string>() : std::string();
}

}  // namespace sluice::kube
