// The weights of a Gaussian window, as torchvision makes them.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace sluice::pipeline::testing {

// [rows][columns]; their sum is about one.
inline std::vector<float> gaussian_weights(std::size_t rows, std::size_t columns, double sigma) {
  std::vector<float> weights;
  double sum = 0;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const double y = static_cast<double>(i / columns) - static_cast<double>(rows / 2);
    const double x = static_cast<double>(i % columns) - static_cast<double>(columns / 2);
    sum += weights.emplace_back(static_cast<float>(std::exp(-0.5 * (x * x + y * y) / (sigma * sigma))));
  }
  for (float& weight : weights) weight = static_cast<float>(weight / sum);
  return weights;
}

}  // namespace sluice::pipeline::testing
