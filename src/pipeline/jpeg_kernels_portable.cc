#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "src/pipeline/jpeg_block_packing.h"
#include "src/pipeline/jpeg_block_reader.h"
#include "src/pipeline/jpeg_kernels.h"
#include "src/pipeline/jpeg_transform.h"

namespace sluice::pipeline {
namespace {

using Eight = std::array<std::int16_t, 8>;

std::uint32_t read_block(BitReader& reader, BlockCoding& coding, CoefficientBlock& block) {
  std::memset(&block, 0, sizeof block);
  return read_block_inline(reader, coding, block);
}

bool skip_block(BitReader& reader, BlockCoding& coding) { return skip_block_inline(reader, coding); }

// Sums and products modulo 2^32, as vector registers have them.
std::uint32_t product(std::int16_t a, int factor) { return static_cast<std::uint32_t>(a * factor); }
std::uint32_t products(std::int16_t a, int a_factor, std::int16_t b, int b_factor) {
  return product(a, a_factor) + product(b, b_factor);
}
std::int16_t sum(std::int16_t a, std::int16_t b) { return static_cast<std::int16_t>(a + b); }
std::int16_t difference(std::int16_t a, std::int16_t b) { return static_cast<std::int16_t>(a - b); }

std::int16_t descaled(std::uint32_t value, int shift) {
  const std::int32_t rounded = static_cast<std::int32_t>(value + (1U << (shift - 1))) >> shift;
  return static_cast<std::int16_t>(std::clamp<std::int32_t>(rounded, std::numeric_limits<std::int16_t>::min(),
                                                            std::numeric_limits<std::int16_t>::max()));
}

Eight transformed(const Eight& in, int shift) {
  const std::uint32_t even2 = products(in[2], k0_541, in[6], k0_541 - k1_847);
  const std::uint32_t even3 = products(in[2], k0_541 + k0_765, in[6], k0_541);
  const std::uint32_t even0 = product(sum(in[0], in[4]), 1 << kFactorBits);
  const std::uint32_t even1 = product(difference(in[0], in[4]), 1 << kFactorBits);
  const std::array<std::uint32_t, 4> evens{even0 + even3, even1 + even2, even1 - even2, even0 - even3};

  const std::int16_t sum73 = sum(in[7], in[3]);
  const std::int16_t sum51 = sum(in[5], in[1]);
  const std::uint32_t z3 = products(sum73, k1_175 - k1_961, sum51, k1_175);
  const std::uint32_t z4 = products(sum73, k1_175, sum51, k1_175 - k0_390);
  const std::array<std::uint32_t, 4> odds{
      products(in[7], -k0_899, in[1], k1_501 - k0_899) + z4, products(in[5], -k2_562, in[3], k3_072 - k2_562) + z3,
      products(in[5], k2_053 - k2_562, in[3], -k2_562) + z4, products(in[7], k0_298 - k0_899, in[1], -k0_899) + z3};
  Eight out;
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = descaled(evens[i] + odds[i], shift);
    out[7 - i] = descaled(evens[i] - odds[i], shift);
  }
  return out;
}

void inverse_transform(const CoefficientBlock& block, const std::int16_t* steps, std::uint8_t* target,
                       std::size_t stride_bytes) {
  std::array<Eight, 8> columns;
  std::int16_t beside_first_row = 0;
  for (std::size_t i = 0; i < kBlockEnd; ++i) {
    columns[i % 8][i / 8] = static_cast<std::int16_t>(block.values[i] * steps[i]);
    if (i >= 8) beside_first_row = static_cast<std::int16_t>(beside_first_row | block.values[i]);
  }
  for (Eight& column : columns) {
    if (beside_first_row == 0) {
      column.fill(static_cast<std::int16_t>(column[0] << kExtraBits));
    } else {
      column = transformed(column, kFirstPassShift);
    }
  }
  for (std::size_t y = 0; y < 8; ++y, target += stride_bytes) {
    Eight row;
    for (std::size_t x = 0; x < 8; ++x) row[x] = columns[x][y];
    row = transformed(row, kSecondPassShift);
    for (std::size_t x = 0; x < 8; ++x) {
      target[x] = static_cast<std::uint8_t>(std::clamp<int>(row[x], -kColourZero, kColourZero - 1) + kColourZero);
    }
  }
}

void widen(const std::uint8_t* samples, std::uint8_t* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const int here = 3 * samples[i];
    target[2 * i] = static_cast<std::uint8_t>((here + samples[static_cast<std::ptrdiff_t>(i) - 1] + 1) >> 2);
    target[2 * i + 1] = static_cast<std::uint8_t>((here + samples[i + 1] + 2) >> 2);
  }
}

void widen_between(const std::uint8_t* near, const std::uint8_t* far, std::uint8_t* target, std::size_t count) {
  const auto between = [near, far](std::ptrdiff_t i) { return 3 * near[i] + far[i]; };
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    const int here = 3 * between(at);
    target[2 * i] = static_cast<std::uint8_t>((here + between(at - 1) + 8) >> 4);
    target[2 * i + 1] = static_cast<std::uint8_t>((here + between(at + 1) + 7) >> 4);
  }
}

std::uint8_t colour(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::uint8_t* pixels,
            std::size_t count) {
  constexpr int kHalf = 1 << (kColourBits - 1);
  for (std::size_t i = 0; i < count; ++i, pixels += 3) {
    const int y = luma[i];
    const int cb = blue[i] - kColourZero;
    const int cr = red[i] - kColourZero;
    pixels[0] = colour(y + cr + ((cr * kRedFromRed + kHalf) >> kColourBits));
    pixels[1] = colour(y - cr + ((cb * kGreenFromBlue + cr * kGreenFromRed + kHalf) >> kColourBits));
    pixels[2] = colour(y + 2 * cb + ((cb * kBlueFromBlue + kHalf) >> kColourBits));
  }
}

void grey_to_rgb(const std::uint8_t* luma, std::uint8_t* pixels, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, pixels += 3) pixels[0] = pixels[1] = pixels[2] = luma[i];
}

}  // namespace

const JpegKernels& portable_jpeg_kernels() {
  static constexpr JpegKernels kKernels{
      "portable", read_block,    skip_block, pack_block_simply, unpack_block_simply, inverse_transform,
      widen,      widen_between, to_rgb,     grey_to_rgb};
  return kKernels;
}

std::vector<const JpegKernels*> available_jpeg_kernels() {
  std::vector<const JpegKernels*> kernels{&portable_jpeg_kernels()};
  for (const JpegKernels* more : x86_jpeg_kernels()) kernels.push_back(more);
  return kernels;
}

const JpegKernels* fast_jpeg_kernels() {
  static const JpegKernels* const fastest = available_jpeg_kernels().back();
  return fastest == &portable_jpeg_kernels() ? nullptr : fastest;
}

}  // namespace sluice::pipeline
