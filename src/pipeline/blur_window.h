// The window of weights of a blur, and what may stand for it: two passes with a column and a row, whose product a
// Gaussian window nearly is, and how far their sum can lie from the window's own.
//
// Thread safety: pure functions and values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sluice::pipeline {

// A weight for each pixel around one, row after row.
struct BlurWindow {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const float> weights;
};

double sum_of_weights(std::span<const float> weights);

// The same window without rows and columns of zeros at its sides, which add nothing to a sum.
struct TrimmedWindow {
  explicit TrimmedWindow(const BlurWindow& window);

  std::size_t top, left, rows, columns;
  std::vector<float> weights;
};

// Of sums of bytes, how far that of two passes can lie from the window's, if the latter is added up row by row in
// float32 with one rounding for each weight.
struct BlurUncertainty {
  static constexpr float kDarkMost = 127;

  float dark;   // of sums below kDarkMost: where a sum is below 128, no addition errs by as much
  float light;  // of all others
};

// REQUIRES: weights that are not below zero and sum to 1.001 at most
class BlurPasses {
 public:
  // Without the weights on both sides that no byte can show.
  struct Pass {
    explicit Pass(std::vector<float> all);

    double at(std::size_t place) const;

    std::size_t first;  // its place in the window
    std::vector<float> weights;
  };

  explicit BlurPasses(const BlurWindow& window);

  // `window`: the one that these passes are of.
  BlurUncertainty uncertainty(const BlurWindow& window) const;

  const Pass& column() const { return column_; }
  const Pass& row() const { return row_; }

 private:
  Pass column_, row_;
};

}  // namespace sluice::pipeline
