// Pillow's conversion of a pixel to grey: ITU-R 601-2, in 16-bit fixed point, rounded.
#pragma once

#include <cstdint>

namespace sluice::pipeline {

inline std::uint8_t luminance(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

}  // namespace sluice::pipeline
