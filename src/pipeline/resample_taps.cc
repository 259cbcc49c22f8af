#include "src/pipeline/resample_taps.h"

#include <algorithm>
#include <cmath>

namespace sluice::pipeline {
namespace {

// Function objects, so that the loops over the taps are compiled for each filter.
struct Triangle {
  double operator()(double x) const {
    x = std::abs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};

// Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981, with a = -0.5.
struct Cubic {
  double operator()(double x) const {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
    return 0.0;
  }
};

// Rounds half away from zero, by truncation, as Pillow does.
std::int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

void AxisTaps::compute(Interpolation interpolation, int input_size, int output_size, int first_output, int output_count,
                       bool mirrored) {
  outputs.clear();
  groups.clear();
  weights.clear();
  switch (interpolation) {
    case Interpolation::kNearest: append_nearest(input_size, output_size, first_output, output_count, mirrored); break;
    case Interpolation::kBilinear:
      compute_with(Triangle(), 1.0, input_size, output_size, first_output, output_count, mirrored);
      break;
    case Interpolation::kBicubic:
      compute_with(Cubic(), 2.0, input_size, output_size, first_output, output_count, mirrored);
      break;
  }
  make_relative(input_size);
}

template <typename Filter>
void AxisTaps::compute_with(Filter filter, double filter_support, int input_size, int output_size, int first_output,
                            int output_count, bool mirrored) {
  const double scale = static_cast<double>(input_size) / output_size;
  const double filter_scale = std::max(scale, 1.0);

  for (int i = 0; i < output_count; ++i) {
    const int output = first_output + (mirrored ? output_count - 1 - i : i);
    const double center = (output + 0.5) * scale;
    append(filter, center, filter_support * filter_scale, 1.0 / filter_scale, input_size);
  }
}

// Pillow adds the scale up from output to output, so its rounding shows where the sum comes close to a whole number.
void AxisTaps::append_nearest(int input_size, int output_size, int first_output, int output_count, bool mirrored) {
  const double scale = static_cast<double>(input_size) / output_size;
  double place = scale * 0.5;
  exact_.clear();
  for (int output = 0; output < first_output + output_count; ++output, place += scale) {
    if (output >= first_output) exact_.push_back(place);
  }
  if (mirrored) std::reverse(exact_.begin(), exact_.end());
  for (const double exact : exact_) {
    weights.push_back(1 << kWeightBits);
    add_output(std::min(static_cast<int>(exact), input_size - 1), weights.size() - 1);
  }
}

void AxisTaps::make_relative(int input_size) {
  first_input = input_size;
  int end = 0;
  for (const Output& output : outputs) {
    first_input = std::min(first_input, output.first_input);
    end = std::max(end, output.first_input + output.count);
  }
  input_count = end - first_input;
  for (Output& output : outputs) output.first_input -= first_input;
}

template <typename Filter>
void AxisTaps::append(Filter filter, double center, double support, double inverse_scale, int input_size) {
  int first = std::max(static_cast<int>(center - support + 0.5), 0);
  const int end = std::min(static_cast<int>(center + support + 0.5), input_size);
  exact_.clear();
  double total = 0;
  for (int input = first; input < end; ++input) {
    exact_.push_back(filter((input - center + 0.5) * inverse_scale));
    total += exact_.back();
  }

  const std::size_t first_weight = weights.size();
  for (const double weight : exact_) weights.push_back(fixed_point(total != 0.0 ? weight / total : weight));
  // Taps without weight at the ends would only cost pixels to decode.
  while (weights.size() > first_weight + 1 && weights.back() == 0) weights.pop_back();
  const auto front = weights.begin() + static_cast<std::ptrdiff_t>(first_weight);
  const auto useful = std::find_if(front, weights.end() - 1, [](std::int32_t weight) { return weight != 0; });
  first += static_cast<int>(useful - front);
  weights.erase(front, useful);
  add_output(first, first_weight);
}

// The output whose taps begin at input `first` and have the weights from `first_weight` to the last one.
void AxisTaps::add_output(int first, std::size_t first_weight) {
  const auto count = static_cast<int>(weights.size() - first_weight);
  outputs.push_back({first, count, groups.size()});
  weights.resize(first_weight + static_cast<std::size_t>((count + kTapsPerGroup - 1) / kTapsPerGroup * kTapsPerGroup));
  for (std::size_t i = first_weight; i < weights.size(); i += kTapsPerGroup) {
    Group& group = groups.emplace_back();
    for (std::size_t tap = 0; tap < kTapsPerGroup; ++tap) {
      std::int32_t rest = weights[i + tap];
      group.high[tap] = static_cast<std::int16_t>(rest >> kLowBits);
      group.low[tap] = static_cast<std::int16_t>(rest & ((1 << kLowBits) - 1));
      for (auto& digit : group.digits) {
        digit[tap] = static_cast<std::int8_t>(rest);  // the lowest byte, as a number from -128 to 127
        rest = (rest - digit[tap]) >> 8;
      }
    }
  }
}

}  // namespace sluice::pipeline
