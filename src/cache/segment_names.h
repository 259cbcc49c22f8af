// The names of segment files: "sluice-0000002a.segment". No other file of the directory is ever touched.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::cache {

inline std::string segment_name(std::uint32_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "sluice-%08x.segment", number);
  return name;
}

inline std::optional<std::uint32_t> segment_number(std::string_view name) {
  constexpr std::string_view kPrefix = "sluice-";
  std::uint32_t number = 0;
  if (name.size() <= kPrefix.size()) return std::nullopt;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number, 16);
  if (number == 0 || segment_name(number) != name) return std::nullopt;
  return number;
}

}  // namespace sluice::cache
