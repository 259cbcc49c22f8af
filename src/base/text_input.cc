#include "src/base/text_input.h"

#include <charconv>
#include <cmath>

namespace sluice {

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Error line_error(const std::string& file, int line, const std::string& what) {
  return invalid_argument(file + ":" + std::to_string(line) + ": " + what);
}

}  // namespace sluice
