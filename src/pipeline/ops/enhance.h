// Pillow's ImageEnhance and ImageOps on RGB pixels without gaps, byte for byte.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/pipeline/geometry.h"
#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {

// ImageEnhance: blends with black, with the mean grey, and with the grey of each pixel. 1 changes nothing.
void adjust_brightness(float factor, Pixels pixels);
void adjust_contrast(float factor, Pixels pixels);
void adjust_saturation(float factor, Pixels pixels);

// adjust_contrast in two steps: the mean of all pixels, and a blend with it of any of them.
int mean_grey(std::span<const std::uint8_t> pixels);

// Turns the H of Pillow's 8-bit HSV by a share of the circle, as torchvision does. REQUIRES: -0.5 <= factor <= 0.5
void adjust_hue(float factor, Pixels pixels);

// ImageEnhance.Sharpness: a blend with the smoothed image, of which only `part` is made. The outermost pixels of the
// image stay as they are. REQUIRES: `from` has the bytes of `size`, `to` those of `part`, and they do not overlap
void adjust_sharpness(float factor, ImageSize size, std::span<const std::uint8_t> from, const Box& part, Pixels to);

// torchvision's second generation's on a tensor of bytes, which smooths to whole numbers. `change`: the factor less 1.
void adjust_tensor_sharpness(double change, ImageSize size, std::span<const std::uint8_t> from, const Box& part,
                             Pixels to);

// ImageOps. REQUIRES: 1 <= bits <= 8
void posterize(int bits, Pixels pixels);
void solarize(double threshold, Pixels pixels);
void invert(Pixels pixels);

// And in two steps: a table for each channel from all pixels, and what it makes of any of them.
using ChannelTables = std::array<std::array<std::uint8_t, 256>, 3>;
ChannelTables autocontrast_tables(std::span<const std::uint8_t> pixels);
ChannelTables equalize_tables(std::span<const std::uint8_t> pixels);
ChannelTables tensor_autocontrast_tables(std::span<const std::uint8_t> pixels);  // torchvision's, second generation
void look_up(const ChannelTables& tables, Pixels pixels);

}  // namespace sluice::pipeline
