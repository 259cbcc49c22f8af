#include "src/pipeline/png_pixels.h"

#include <algorithm>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kRgbBytes = 3;
constexpr std::size_t kByteBits = 8;
constexpr std::size_t kLargestSample = 255;

// Pixels of kStep bytes, whose colours are at these places.
template <std::size_t kStep, std::size_t kRed, std::size_t kGreen, std::size_t kBlue>
void pick(const std::uint8_t* row, int first, int count, std::uint8_t* __restrict pixels) {
  const std::uint8_t* from = row + static_cast<std::size_t>(first) * kStep;
  for (int i = 0; i < count; ++i, from += kStep, pixels += kRgbBytes) {
    pixels[0] = from[kRed];
    pixels[1] = from[kGreen];
    pixels[2] = from[kBlue];
  }
}

}  // namespace

PngPixels::PngPixels(const PngFile& file) : colour_(file.colour), depth_bits_(file.depth_bits) {
  if (colour_ == PngColour::kPalette) {
    colours_ = file.palette.size() / kRgbBytes;
    for (std::size_t i = 0; i < colours_; ++i) std::memcpy(table_[i].data(), &file.palette[i * kRgbBytes], kRgbBytes);
    return;
  }
  colours_ = std::size_t{1} << std::min<std::size_t>(kByteBits, static_cast<std::size_t>(depth_bits_));
  for (std::size_t i = 0; i < colours_; ++i) {
    table_[i].fill(static_cast<std::uint8_t>(i * kLargestSample / (colours_ - 1)));
  }
}

void PngPixels::to_rgb(const std::uint8_t* row, int first, int count, std::uint8_t* pixels) {
  const bool is_wide = depth_bits_ == 16;
  switch (colour_) {
    case PngColour::kGrey:
      if (depth_bits_ == 8) return pick<1, 0, 0, 0>(row, first, count, pixels);
      return look_up(row, first, count, pixels);
    case PngColour::kPalette: return look_up(row, first, count, pixels);
    case PngColour::kRgb:
      return is_wide ? pick<6, 0, 2, 4>(row, first, count, pixels) : pick<3, 0, 1, 2>(row, first, count, pixels);
    case PngColour::kGreyAlpha:
      return is_wide ? pick<4, 0, 0, 0>(row, first, count, pixels) : pick<2, 0, 0, 0>(row, first, count, pixels);
    case PngColour::kRgbAlpha:
      return is_wide ? pick<8, 0, 2, 4>(row, first, count, pixels) : pick<4, 0, 1, 2>(row, first, count, pixels);
  }
}

void PngPixels::look_up(const std::uint8_t* row, int first, int count, std::uint8_t* pixels) {
  const auto bits = static_cast<std::size_t>(depth_bits_);
  const std::size_t mask = (std::size_t{1} << bits) - 1;
  for (int x = first; x < first + count; ++x, pixels += kRgbBytes) {
    const std::size_t bit = static_cast<std::size_t>(x) * bits;
    const std::size_t sample = row[bit / kByteBits] >> (kByteBits - bits - bit % kByteBits) & mask;
    largest_ = std::max(largest_, sample);
    std::memcpy(pixels, table_[sample].data(), kRgbBytes);
  }
}

}  // namespace sluice::pipeline
