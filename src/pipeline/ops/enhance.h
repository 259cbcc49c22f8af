// Pillow's ImageEnhance and ImageOps on RGB pixels without gaps, byte for byte.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "src/pipeline/geometry.h"
#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {

// ImageEnhance: blends with black, with the mean grey, and with the grey of each pixel. 1 changes nothing.
void adjust_brightness(float factor, Pixels pixels);
void adjust_contrast(float factor, Pixels pixels);
void adjust_saturation(float factor, Pixels pixels);

// Turns the H of Pillow's 8-bit HSV by a share of the circle, as torchvision does. REQUIRES: -0.5 <= factor <= 0.5
void adjust_hue(float factor, Pixels pixels);

// ImageEnhance.Sharpness: a blend with the smoothed image. The outermost pixels stay as they are.
// REQUIRES: both have the bytes of `size`, and do not overlap
void adjust_sharpness(float factor, ImageSize size, std::span<const std::uint8_t> from, Pixels to);

// ImageOps. REQUIRES: 1 <= bits <= 8
void posterize(int bits, Pixels pixels);
void solarize(double threshold, Pixels pixels);
void invert(Pixels pixels);
void autocontrast(Pixels pixels);
void equalize(Pixels pixels);

}  // namespace sluice::pipeline
