#include "scheduler/decide/wording.h"

#include <charconv>
#include <cmath>

namespace sluice::scheduler {
namespace {

constexpr double kWholeUpTo = 1e15;

}  // namespace

Text& Text::operator<<(long long whole) {
  char buffer[24];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, whole);
  text_.append(buffer, end);
  return *this;
}

Text& Text::operator<<(Number number) {
  const double value = number.value;
  const double rounded = std::round(value);
  if (std::abs(value) < kWholeUpTo && (std::abs(value) >= 100 || rounded == value))
    return *this << static_cast<long long>(rounded);
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 3);
  text_.append(buffer, end);
  return *this;
}

Text& Text::operator<<(Percent percent) { return *this << Number{std::round(100 * percent.ratio)} << " %"; }

Text& Text::operator<<(Workers workers) {
  return *this << static_cast<long long>(workers.count) << (workers.count == 1 ? " worker" : " workers");
}

}  // namespace sluice::scheduler
