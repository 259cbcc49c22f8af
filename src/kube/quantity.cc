#include "src/kube/quantity.h"

#include <limits>
#include <optional>
#include <string>

namespace sluice::kube {
namespace {

// 128 bits hold every quantity of interest times any suffix.
__extension__ using Wide = __int128;
constexpr Wide kWideLimit = static_cast<Wide>(1) << 120;

// The quantity is digits * 10^decimal_exponent * 2^binary_exponent.
struct Parts {
  bool negative = false;
  Wide digits = 0;
  int decimal_exponent = 0;
  int binary_exponent = 0;
};

struct Suffix {
  std::string_view text;
  int decimal_exponent;
  int binary_exponent;
};
constexpr Suffix kSuffixes[] = {
    {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
    {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Suffix> parse_suffix(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (text == suffix.text) return suffix;
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text[0] == '-';
  if (negative || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 3) return std::nullopt;
  int exponent = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    exponent = exponent * 10 + (c - '0');
  }
  return Suffix{"", negative ? -exponent : exponent, 0};
}

std::optional<Parts> parse(std::string_view text) {
  Parts parts;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) parts.negative = text[at++] == '-';
  bool any_digit = false;
  bool in_fraction = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!is_digit(text[at])) break;
    any_digit = true;
    if (parts.digits > kWideLimit / 10) return std::nullopt;
    parts.digits = parts.digits * 10 + (text[at] - '0');
    if (in_fraction) --parts.decimal_exponent;
  }
  const auto suffix = parse_suffix(text.substr(at));
  if (!any_digit || !suffix) return std::nullopt;
  parts.decimal_exponent += suffix->decimal_exponent;
  parts.binary_exponent = suffix->binary_exponent;
  return parts;
}

// The quantity in units of 10^unit_exponent, rounded away from zero, and what does not fit is the most that does.
std::int64_t in_units(const Parts& parts, int unit_exponent) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t most = parts.negative ? -kMost : kMost;
  Wide value = parts.digits;
  if (value == 0) return 0;
  for (int i = 0; i < parts.binary_exponent; ++i) {
    if (value > kWideLimit / 2) return most;
    value *= 2;
  }
  int exponent = parts.decimal_exponent - unit_exponent;
  for (; exponent > 0; --exponent) {
    if (value > kWideLimit / 10) return most;
    value *= 10;
  }
  bool has_remainder = false;
  for (; exponent < 0 && value != 0; ++exponent) {
    has_remainder |= value % 10 != 0;
    value /= 10;
  }
  if (has_remainder) ++value;
  if (value > kMost) return most;
  return static_cast<std::int64_t>(parts.negative ? -value : value);
}

Result<std::int64_t> convert(std::string_view quantity, int unit_exponent) {
  const auto parts = parse(quantity);
  if (!parts) return invalid_argument("'" + std::string(quantity) + "' is no quantity (such as 250m, 2, 1.5Gi)");
  return in_units(*parts, unit_exponent);
}

}  // namespace

Result<std::int64_t> parse_millicores(std::string_view quantity) { return convert(quantity, -3); }
Result<std::int64_t> parse_bytes(std::string_view quantity) { return convert(quantity, 0); }

}  // namespace sluice::kube
