#include "src/pipeline/blur_window.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace sluice::pipeline {
namespace {

constexpr double kLargestByte = 255;
constexpr double kSecondOrder = 1.01;

// Half a unit in the last place of a float32 number: the largest error of what is rounded to it.
double half_unit(double number) {
  constexpr std::uint64_t kExponent = std::uint64_t{0x7ff} << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) & kExponent) * 0x1p-24;
}

// The largest error of a sum of weighted bytes that is not above `most`. An addition errs by half a unit of its sum at
// most, and by no more than what it adds.
double rounding_error(std::span<const float> weights, double most) {
  double sum = 0;
  double error = 0;
  for (const float weight : weights) {
    sum += weight;
    const double reached = std::min(kLargestByte * sum * kSecondOrder, most);
    error += std::min(kLargestByte * weight, half_unit(reached));
  }
  return error;
}

// From the first to the last one of `size` elements for which `counts`, at least one.
template <typename Counts>
std::pair<std::size_t, std::size_t> extent_of(std::size_t size, const Counts& counts) {
  std::size_t first = 0;
  std::size_t end = size;
  while (first + 1 < end && !counts(first)) ++first;
  while (first + 1 < end && !counts(end - 1)) --end;
  return {first, end};
}

// The sums of a window's rows, or of its columns.
std::vector<float> sums_along(const BlurWindow& window, bool rows) {
  std::vector<float> sums(rows ? window.rows : window.columns);
  for (std::size_t i = 0; i < window.weights.size(); ++i) {
    sums[rows ? i / window.columns : i % window.columns] += window.weights[i];
  }
  return sums;
}

}  // namespace

double sum_of_weights(std::span<const float> weights) { return std::accumulate(weights.begin(), weights.end(), 0.0); }

TrimmedWindow::TrimmedWindow(const BlurWindow& window) {
  const auto extent = [&](const std::vector<float>& sums) {
    return extent_of(sums.size(), [&](std::size_t i) { return sums[i] > 0; });
  };
  const auto [first_row, end_row] = extent(sums_along(window, true));
  const auto [first_column, end_column] = extent(sums_along(window, false));
  top = first_row, rows = end_row - first_row;
  left = first_column, columns = end_column - first_column;
  for (std::size_t y = top; y < end_row; ++y) {
    const auto row = window.weights.subspan(y * window.columns + left, columns);
    weights.insert(weights.end(), row.begin(), row.end());
  }
}

BlurPasses::Pass::Pass(std::vector<float> all) : weights(std::move(all)) {
  constexpr float kLeast = 1e-8F;
  const auto [from, end] = extent_of(weights.size(), [&](std::size_t i) { return weights[i] >= kLeast; });
  first = from;
  weights.resize(end);
  weights.erase(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(from));
}

double BlurPasses::Pass::at(std::size_t place) const {
  return place >= first && place - first < weights.size() ? double{weights[place - first]} : 0.0;
}

BlurPasses::BlurPasses(const BlurWindow& window) : column_(sums_along(window, true)), row_(sums_along(window, false)) {}

BlurUncertainty BlurPasses::uncertainty(const BlurWindow& window) const {
  constexpr double kAboveDark = BlurUncertainty::kDarkMost + 0.9;  // with any uncertainty that is below a half
  constexpr double kAboveAll = 255.9;
  double factoring = 0;
  for (std::size_t y = 0, i = 0; y < window.rows; ++y) {
    for (std::size_t x = 0; x < window.columns; ++x, ++i) {
      factoring += std::abs(window.weights[i] - column_.at(y) * row_.at(x));
    }
  }
  const double products = 2 * half_unit(kAboveAll);  // of a pass, where they are rounded before they are added
  const double passes = rounding_error(row_.weights, kAboveAll) * sum_of_weights(column_.weights) +
                        rounding_error(column_.weights, kAboveAll) + 2 * products;
  const auto below = [&](double most) {
    constexpr double kLeast = 1e-4;  // the test for it rounds, too
    const double all = rounding_error(window.weights, most) + passes + kLargestByte * factoring;
    return static_cast<float>(kSecondOrder * all + kLeast);
  };
  return {below(kAboveDark), below(kAboveAll)};
}

}  // namespace sluice::pipeline
