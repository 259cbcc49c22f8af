#include "src/kube/timestamp.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace sluice::kube {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

std::tm calendar(Clock::WallTimePoint time, std::int64_t& micros) {
  const auto since_epoch = std::chrono::floor<microseconds>(time.time_since_epoch());
  const auto whole = std::chrono::floor<seconds>(since_epoch);
  micros = (since_epoch - whole).count();
  const std::time_t stamp = whole.count();
  std::tm fields{};
  gmtime_r(&stamp, &fields);
  return fields;
}

std::string format(const std::tm& fields) {
  char text[24];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &fields);
  return {text, size};
}

bool parse_number(std::string_view text, int& number) {
  if (text.front() == '-') return false;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

}  // namespace

std::string format_time(Clock::WallTimePoint time) {
  std::int64_t micros = 0;
  return format(calendar(time, micros)) + "Z";
}

std::string format_microtime(Clock::WallTimePoint time) {
  std::int64_t micros = 0;
  const std::tm fields = calendar(time, micros);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06dZ", static_cast<int>(micros));
  return format(fields) + fraction;
}

std::optional<Clock::WallTimePoint> parse_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size() || text.back() != 'Z') return std::nullopt;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] != '0' && text[i] != kShape[i]) return std::nullopt;
  }
  std::tm fields{};
  const bool parsed =
      parse_number(text.substr(0, 4), fields.tm_year) && parse_number(text.substr(5, 2), fields.tm_mon) &&
      parse_number(text.substr(8, 2), fields.tm_mday) && parse_number(text.substr(11, 2), fields.tm_hour) &&
      parse_number(text.substr(14, 2), fields.tm_min) && parse_number(text.substr(17, 2), fields.tm_sec);
  if (!parsed) return std::nullopt;
  // The wall clock counts nanoseconds in 64 bits: it ends in 2262.
  if (fields.tm_year < 1970 || fields.tm_year > 2261) return std::nullopt;
  fields.tm_year -= 1900;
  fields.tm_mon -= 1;
  const std::tm written = fields;

  std::string_view fraction = text.substr(kShape.size());
  fraction.remove_suffix(1);
  std::int64_t micros = 0;
  if (!fraction.empty()) {
    if (fraction.front() != '.' || fraction.size() < 2 || fraction.size() > 10) return std::nullopt;
    fraction.remove_prefix(1);
    for (std::size_t i = 0; i < std::max<std::size_t>(fraction.size(), 6); ++i) {
      const char digit = i < fraction.size() ? fraction[i] : '0';
      if (digit < '0' || digit > '9') return std::nullopt;
      if (i < 6) micros = micros * 10 + (digit - '0');
    }
  }
  const std::time_t stamp = timegm(&fields);
  // A day or a minute that does not exist has been carried over into one that does.
  if (fields.tm_mon != written.tm_mon || fields.tm_mday != written.tm_mday || fields.tm_hour != written.tm_hour ||
      fields.tm_min != written.tm_min || fields.tm_sec != written.tm_sec)
    return std::nullopt;
  const auto whole = std::chrono::system_clock::from_time_t(stamp);
  return whole + std::chrono::duration_cast<std::chrono::system_clock::duration>(microseconds(micros));
}

}  // namespace sluice::kube
