// Quantities as people write them.
//
// Thread safety: pure functions.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace sluice::api {

// "250m"
inline std::string millicores_text(std::int64_t millicores) { return std::to_string(millicores) + "m"; }

// "256Mi" where it is whole, as that is easier to read; else bytes
inline std::string memory_text(std::int64_t bytes) {
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  return bytes % kMebibyte == 0 ? std::to_string(bytes / kMebibyte) + "Mi" : std::to_string(bytes);
}

// "1.5", "4"
inline std::string number_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace sluice::api
