#include "src/pipeline/resample_taps.h"

#include <algorithm>
#include <cmath>

namespace sluice::pipeline {
namespace {

// Function objects, so that the loops over the taps are compiled for each filter.
struct Triangle {
  static constexpr double kSupport = 1.0;
  double operator()(double x) const {
    x = std::abs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
  }
};

// Keys, "Cubic Convolution Interpolation for Digital Image Processing", 1981, with a = -0.5.
struct Cubic {
  static constexpr double kSupport = 2.0;
  double operator()(double x) const {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
    return 0.0;
  }
};

// A filter over an axis of `input_size` pixels, which become `output_size`.
template <typename Filter>
struct Convolution {
  int input_size;
  int output_size;

  // Returns the first input of an output; `weights` are those of the inputs from there on, and add up to 1.
  int weigh(int output, std::vector<double>& weights) const {
    const double scale = static_cast<double>(input_size) / output_size;
    const double filter_scale = std::max(scale, 1.0);
    const double inverse_scale = 1.0 / filter_scale;
    const double support = Filter::kSupport * filter_scale;
    const double center = (output + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int end = std::min(static_cast<int>(center + support + 0.5), input_size);
    weights.clear();
    double total = 0;
    for (int input = first; input < end; ++input) {
      weights.push_back(Filter()((input - center + 0.5) * inverse_scale));
      total += weights.back();
    }
    if (total == 0.0) return first;
    for (double& weight : weights) weight /= total;
    return first;
  }
};

// Rounds half away from zero, by truncation, to `bits` behind the point.
std::int32_t fixed_point(double weight, int bits) {
  const double scaled = weight * (1 << bits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5) * (1 << (kWeightBits - bits));
}

// How many bits behind the point torch's weights have: 16 bits hold the largest one of all outputs.
template <typename Filter>
int tensor_weight_bits(const Convolution<Filter>& convolution, std::vector<double>& weights) {
  constexpr double kTooLarge = 1 << 15;
  double largest = 0;
  for (int output = 0; output < convolution.output_size; ++output) {
    convolution.weigh(output, weights);
    for (const double weight : weights) largest = std::max(largest, weight);
  }
  int bits = 0;
  while (bits < kWeightBits && std::floor(0.5 + largest * (1 << (bits + 1))) < kTooLarge) ++bits;
  return bits;
}

}  // namespace

void AxisTaps::compute(Interpolation interpolation, int input_size, int output_size, int first_output, int output_count,
                       bool mirrored) {
  outputs.clear();
  groups.clear();
  weights.clear();
  const auto convolve = [&](const auto& convolution) {
    const int bits = is_of_tensors(interpolation) ? tensor_weight_bits(convolution, exact_) : kWeightBits;
    for (int i = 0; i < output_count; ++i) {
      append(convolution.weigh(first_output + (mirrored ? output_count - 1 - i : i), exact_), bits);
    }
  };
  switch (interpolation) {
    case Interpolation::kNearest: append_nearest(input_size, output_size, first_output, output_count, mirrored); break;
    case Interpolation::kBilinear:
    case Interpolation::kTensorBilinear: convolve(Convolution<Triangle>{input_size, output_size}); break;
    case Interpolation::kBicubic:
    case Interpolation::kTensorBicubic: convolve(Convolution<Cubic>{input_size, output_size}); break;
  }
  make_relative(input_size);
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

// The output whose inputs begin at `first` and have the weights exact_.
void AxisTaps::append(int first, int weight_bits) {
  const std::size_t first_weight = weights.size();
  for (const double weight : exact_) weights.push_back(fixed_point(weight, weight_bits));
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
