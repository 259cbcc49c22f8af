// The weights of one axis of a resize: which input pixels make an output pixel, and how much of each.
//
// This is the arithmetic of Pillow's Image.resize for 8-bit images, to the last bit: a convolution. When shrinking, its
// filter is widened by the scale (so it antialiases). It is truncated at the image's edge and normalised there, with
// the weights rounded to 22-bit fixed point. Source: Pillow's documentation ("Filters") and Heckbert, "Fundamentals of
// Texture Mapping and Image Warping", 1989, for area-preserving filters; checked against Pillow byte for byte.
//
// torch's interpolate() of uint8 differs in the rounding: to 16-bit weights, with as many bits behind the point as the
// largest weight of the axis leaves. Such a weight is a whole multiple of a 22-bit one, so the sums round as torch's
// do.
//
// Glossary. Tap: one input pixel with its weight. Scale: input pixels per output pixel. Support: how far the filter
// reaches from its centre, in input pixels.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

// A weight of 1.0. 8 bits of pixel and 2 bits for what overshoots are left of 32.
inline constexpr int kWeightBits = 22;
inline constexpr std::int32_t kRoundingHalf = 1 << (kWeightBits - 1);

// Weights are also stored in parts for instructions that multiply smaller numbers; sums of the parts, put together
// modulo 2^32, are exact. For 16 bits: weight == high * 2^kLowBits + low, with 0 <= low < 2^kLowBits. For 8 bits: the
// weight's digits to the base 256, each from -128 to 127, the lowest first.
inline constexpr int kLowBits = 11;
inline constexpr int kDigits = 3;

// Taps come in groups of this many; the last group is filled with weights of zero.
inline constexpr int kTapsPerGroup = 4;

struct AxisTaps {
  struct Group {
    std::int16_t high[kTapsPerGroup];
    std::int16_t low[kTapsPerGroup];
    std::int8_t digits[kDigits][kTapsPerGroup];
  };
  struct Output {
    int first_input = 0;          // relative to the first input pixel that any output needs
    int count = 0;                // taps with a place in the input
    std::size_t first_group = 0;  // the same number for weights: first_group * kTapsPerGroup
  };

  int first_input = 0;  // the inputs needed: [first_input, first_input + input_count)
  int input_count = 0;
  std::vector<Output> outputs;
  std::vector<Group> groups;
  std::vector<std::int32_t> weights;

  // Recomputes everything for the outputs [first_output, first_output + output_count) of a resize from `input_size` to
  // `output_size` pixels; in reverse order if `mirrored`. Memory is reused.
  // REQUIRES: sizes and counts are positive, and the outputs asked for exist
  void compute(Interpolation interpolation, int input_size, int output_size, int first_output, int output_count,
               bool mirrored);

 private:
  void append(int first, int weight_bits);
  void append_nearest(int input_size, int output_size, int first_output, int output_count, bool mirrored);
  void add_output(int first, std::size_t first_weight);
  void make_relative(int input_size);

  std::vector<double> exact_;  // the weights of one output, or the places of all, before rounding
};

}  // namespace sluice::pipeline
