#include "src/pipeline/gaussian_blur.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kBlock = 64;  // elements that a loop handles at once: eight of the wide registers
constexpr std::size_t kLanes = 8;   // exact sums at once, as each addition waits for the one before
constexpr double kLargestByte = 255;
constexpr double kHalfUnit = 0x1p-24;  // of the last place, relative

std::size_t side(int pixels) { return static_cast<std::size_t>(pixels); }

double sum_of(std::span<const float> weights) { return std::accumulate(weights.begin(), weights.end(), 0.0); }

// The largest error of a sum of weighted bytes.
double rounding_error(std::span<const float> weights) {
  double sum = 0;
  double error = 0;
  for (const float weight : weights) {
    sum += weight;
    error += std::min<double>(weight, sum * kHalfUnit);
  }
  return kLargestByte * error;
}

// The column and the row whose product the window is, as far as it is one.
struct Factors {
  explicit Factors(const BlurWindow& window) : column(window.rows), row(window.columns) {
    for (std::size_t i = 0; i < window.weights.size(); ++i) {
      column[i / row.size()] += window.weights[i];
      row[i % row.size()] += window.weights[i];
    }
  }

  std::vector<float> column;
  std::vector<float> row;
};

// How far the sum of two passes can lie from torch's.
float uncertainty(const BlurWindow& window, const Factors& factors) {
  double factoring = 0;
  for (std::size_t i = 0; i < window.weights.size(); ++i) {
    const double product = double{factors.column[i / window.columns]} * factors.row[i % window.columns];
    factoring += std::abs(window.weights[i] - product);
  }
  const double passes = rounding_error(factors.row) * sum_of(factors.column) + rounding_error(factors.column);
  constexpr double kSecondOrder = 1.01;
  constexpr double kLeast = 1e-4;  // the test for it rounds, too
  return static_cast<float>(kSecondOrder * (rounding_error(window.weights) + passes + kLargestByte * factoring) +
                            kLeast);
}

// The place within an axis that a place before or behind it mirrors.
std::size_t mirrored(int at, int size) {
  return static_cast<std::size_t>(at < 0 ? -at : std::min(at, 2 * size - 2 - at));
}

// The loops are compiled twice, the second time for wide registers.

// target[i] = the sum of weights[k] * source[i + k * step]. Works on whole blocks: as much is read and written.
[[gnu::always_inline]] inline void weigh(const float* source, std::size_t step, std::span<const float> weights,
                                         float* target, std::size_t count) {
  for (std::size_t start = 0; start < count; start += kBlock) {
    std::array<float, kBlock> sums{};
    const float* at = source + start;
    for (const float weight : weights) {
      for (std::size_t i = 0; i < kBlock; ++i) sums[i] = __builtin_fmaf(weight, at[i], sums[i]);
      at += step;
    }
    std::copy(sums.begin(), sums.end(), target + start);
  }
}

using Lanes = std::array<const float*, kLanes>;  // the first elements of windows

[[gnu::always_inline]] inline std::array<float, kLanes> exact_sums(const Lanes& windows, std::size_t stride,
                                                                   const BlurWindow& window) {
  std::array<float, kLanes> sums{};
  std::size_t number = 0;
  for (std::size_t y = 0; y < window.rows; ++y) {
    for (std::size_t x = 0; x < window.columns; ++x, ++number) {
      const std::size_t at = y * stride + 3 * x;
      const float weight = window.weights[number];
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        sums[lane] = __builtin_fmaf(weight, windows[lane][at], sums[lane]);
    }
  }
  return sums;
}

// Rounds a block; true if a sum may lie on the other side of a half than torch's, which then has a mark.
[[gnu::always_inline]] inline bool round_block(const float* sums, float uncertainty, std::uint8_t* bytes,
                                               std::uint8_t* marks) {
  int marked = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const int whole = static_cast<int>(sums[i]);
    const float above_half = sums[i] - static_cast<float>(whole) - 0.5F;
    const int is_uncertain = static_cast<int>(std::abs(above_half) <= uncertainty);
    bytes[i] = static_cast<std::uint8_t>(whole + static_cast<int>(above_half > 0));
    marks[i] = static_cast<std::uint8_t>(is_uncertain);
    marked |= is_uncertain;
  }
  return marked != 0;
}

struct Padded {
  const float* floats;
  std::size_t stride;  // elements of a row
  ImageSize size;      // of the image inside
};

[[gnu::always_inline]] inline void all_sums(const Padded& padded, const BlurWindow& window, float* sums) {
  const std::size_t row = side(padded.size.width) * 3;
  for (std::size_t y = 0; y < side(padded.size.height); ++y) {
    for (std::size_t x = 0; x < row; x += kLanes) {
      Lanes windows{};
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        windows[lane] = padded.floats + y * padded.stride + std::min(x + lane, row - 1);
      const auto exact = exact_sums(windows, padded.stride, window);
      for (std::size_t lane = 0; lane < kLanes && x + lane < row; ++lane) sums[y * row + x + lane] = exact[lane];
    }
  }
}

[[gnu::always_inline]] inline void blur_all(const Padded& padded, const BlurWindow& window, float* across,
                                            std::uint8_t* blurred) {
  const std::size_t row = side(padded.size.width) * 3;
  const std::size_t rows = side(padded.size.height) + window.rows - 1;
  const Factors factors(window);
  // A block may write over the beginning of the next row, which comes afterwards.
  for (std::size_t y = 0; y < rows; ++y)
    weigh(padded.floats + y * padded.stride, 3, factors.row, across + y * row, row);

  const float uncertain = uncertainty(window, factors);
  std::array<std::size_t, kLanes> places{};
  std::size_t waiting = 0;
  const auto settle = [&]() __attribute__((always_inline)) {
    Lanes windows{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t place = places[std::min(lane, waiting - 1)];
      windows[lane] = padded.floats + place / row * padded.stride + place % row;
    }
    const auto exact = exact_sums(windows, padded.stride, window);
    for (std::size_t lane = 0; lane < waiting; ++lane)
      blurred[places[lane]] = static_cast<std::uint8_t>(std::nearbyint(exact[lane]));
    waiting = 0;
  };
  for (std::size_t y = 0; y < side(padded.size.height); ++y) {
    for (std::size_t x = 0; x < row; x += kBlock) {
      std::array<float, kBlock> sums;
      std::array<std::uint8_t, kBlock> bytes;
      std::array<std::uint8_t, kBlock> marks;
      weigh(across + y * row + x, row, factors.column, sums.data(), kBlock);
      const bool marked = round_block(sums.data(), uncertain, bytes.data(), marks.data());
      const std::size_t count = std::min(kBlock, row - x);
      std::copy_n(bytes.data(), count, blurred + y * row + x);
      for (std::size_t i = 0; marked && i < count; ++i) {
        if (marks[i] == 0) continue;
        places[waiting++] = y * row + x + i;
        if (waiting == kLanes) settle();
      }
    }
  }
  if (waiting > 0) settle();
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void blur_all_wide(const Padded& padded, const BlurWindow& window, float* across,
                                                       std::uint8_t* blurred) {
  blur_all(padded, window, across, blurred);
}

__attribute__((target("avx2,fma"))) void all_sums_wide(const Padded& padded, const BlurWindow& window, float* sums) {
  all_sums(padded, window, sums);
}

bool has_wide_registers() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
#endif

}  // namespace

bool can_blur(ImageSize size, const BlurWindow& window) {
  const auto fits = [](std::size_t weights, int pixels) {
    return weights % 2 == 1 && pixels > 0 && weights / 2 < side(pixels);
  };
  constexpr double kLargestSum = 1.001;
  return fits(window.rows, size.height) && fits(window.columns, size.width) &&
         window.weights.size() == window.rows * window.columns &&
         std::all_of(window.weights.begin(), window.weights.end(), [](float weight) { return weight >= 0; }) &&
         sum_of(window.weights) <= kLargestSum;
}

void GaussianBlur::pad(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window) {
  const int above = static_cast<int>(window.rows / 2);
  const int left = static_cast<int>(window.columns / 2);
  const std::size_t stride = (side(size.width) + window.columns - 1) * 3;
  const std::size_t rows = side(size.height) + window.rows - 1;
  padded_.resize(std::max(padded_.size(), rows * stride + kBlock));
  across_.resize(std::max(across_.size(), rows * side(size.width) * 3 + kBlock));
  float* target = padded_.data();
  for (int y = -above; y < size.height + above; ++y) {
    const std::uint8_t* row = &pixels[mirrored(y, size.height) * side(size.width) * 3];
    const auto put_mirrored = [&](int from, int end) {
      for (int x = from; x < end; ++x) target = std::copy_n(row + mirrored(x, size.width) * 3, 3, target);
    };
    put_mirrored(-left, 0);
    target = std::copy_n(row, side(size.width) * 3, target);
    put_mirrored(size.width, size.width + left);
  }
}

void GaussianBlur::blur(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window,
                        std::span<std::uint8_t> blurred) {
  assert(can_blur(size, window));
  pad(size, pixels, window);
  const Padded padded{padded_.data(), (side(size.width) + window.columns - 1) * 3, size};
#if defined(__x86_64__)
  if (has_wide_registers()) return blur_all_wide(padded, window, across_.data(), blurred.data());
#endif
  blur_all(padded, window, across_.data(), blurred.data());
}

void GaussianBlur::sums(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window,
                        std::span<float> sums) {
  assert(can_blur(size, window));
  pad(size, pixels, window);
  const Padded padded{padded_.data(), (side(size.width) + window.columns - 1) * 3, size};
#if defined(__x86_64__)
  if (has_wide_registers()) return all_sums_wide(padded, window, sums.data());
#endif
  all_sums(padded, window, sums.data());
}

}  // namespace sluice::pipeline
