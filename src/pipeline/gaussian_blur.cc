#include "src/pipeline/gaussian_blur.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::pipeline {
namespace {

constexpr std::size_t kBlock = 64;  // elements that a loop handles at once: eight of the wide registers
constexpr std::size_t kLanes = 8;   // exact sums at once, as each addition waits for the one before
std::size_t side(int pixels) { return static_cast<std::size_t>(pixels); }

std::size_t padded_stride(ImageSize size, const BlurWindow& window) {
  return (side(size.width) + window.columns - 1) * 3;
}

std::size_t whole_blocks(std::size_t elements) { return (elements + kBlock - 1) / kBlock * kBlock; }

// The place within an axis that a place before or behind it mirrors.
std::size_t mirrored(int at, int size) {
  return static_cast<std::size_t>(at < 0 ? -at : std::min(at, 2 * size - 2 - at));
}

struct Padded {
  float* floats;
  std::size_t stride;  // elements of a row
  ImageSize size;      // of the image inside
};

// target[i] = the sum of weights[k] * sources[k][at + i] for a whole block.
using Weigh = void (*)(const float* const* sources, std::size_t at, std::span<const float> weights, float* target);

void weigh_anywhere(const float* const* sources, std::size_t at, std::span<const float> weights, float* target) {
  std::array<float, kBlock> sums{};
  for (std::size_t k = 0; k < weights.size(); ++k) {
    for (std::size_t i = 0; i < kBlock; ++i) sums[i] += weights[k] * sources[k][at + i];
  }
  std::copy(sums.begin(), sums.end(), target);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void weigh_widely(const float* const* sources, std::size_t at,
                                                      std::span<const float> weights, float* target) {
  constexpr std::size_t kWide = 8;
  __m256 sums[kBlock / kWide];
#pragma GCC unroll 8
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const __m256 weight = _mm256_set1_ps(weights[k]);
    const float* from = sources[k] + at;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kBlock / kWide; ++i)
      sums[i] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(from + i * kWide), sums[i]);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kBlock / kWide; ++i) _mm256_storeu_ps(target + i * kWide, sums[i]);
}
#endif

// The loops are compiled twice, the second time for wide registers.

[[gnu::always_inline]] inline void pad(const std::uint8_t* pixels, const BlurWindow& window, const Padded& padded) {
  const int above = static_cast<int>(window.rows / 2);
  const int left = static_cast<int>(window.columns / 2);
  const int width = padded.size.width;
  float* target = padded.floats;
  for (int y = -above; y < padded.size.height + above; ++y) {
    const std::uint8_t* row = pixels + mirrored(y, padded.size.height) * side(width) * 3;
    const auto put_mirrored = [&](int from, int end) {
      for (int x = from; x < end; ++x) target = std::copy_n(row + mirrored(x, width) * 3, 3, target);
    };
    put_mirrored(-left, 0);
    target = std::copy_n(row, side(width) * 3, target);
    put_mirrored(width, width + left);
  }
}

using Lanes = std::array<const float*, kLanes>;  // the first elements of windows

[[gnu::always_inline]] inline std::array<float, kLanes> exact_sums(const Lanes& windows, std::size_t stride,
                                                                   const TrimmedWindow& window) {
  std::array<float, kLanes> sums{};
  std::size_t number = 0;
  for (std::size_t y = 0; y < window.rows; ++y) {
    for (std::size_t x = 0; x < window.columns; ++x, ++number) {
      const std::size_t at = (window.top + y) * stride + 3 * (window.left + x);
      const float weight = window.weights[number];
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        sums[lane] = __builtin_fmaf(weight, windows[lane][at], sums[lane]);
    }
  }
  return sums;
}

// Rounds a block; true if a sum may lie on the other side of a half than torch's, which then has a mark.
[[gnu::always_inline]] inline bool round_block(const float* sums, const BlurUncertainty& uncertainty,
                                               std::uint8_t* bytes, std::uint8_t* marks) {
  int marked = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const int whole = static_cast<int>(sums[i]);
    const float above_half = sums[i] - static_cast<float>(whole) - 0.5F;
    const float uncertain = sums[i] < BlurUncertainty::kDarkMost ? uncertainty.dark : uncertainty.light;
    const int is_uncertain = static_cast<int>(std::abs(above_half) <= uncertain);
    bytes[i] = static_cast<std::uint8_t>(whole + static_cast<int>(above_half > 0));
    marks[i] = static_cast<std::uint8_t>(is_uncertain);
    marked |= is_uncertain;
  }
  return marked != 0;
}

[[gnu::always_inline]] inline void all_sums(const std::uint8_t* pixels, const Padded& padded, const BlurWindow& window,
                                            float* sums) {
  pad(pixels, window, padded);
  const TrimmedWindow trimmed(window);
  const std::size_t row = side(padded.size.width) * 3;
  for (std::size_t y = 0; y < side(padded.size.height); ++y) {
    for (std::size_t x = 0; x < row; x += kLanes) {
      Lanes windows{};
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        windows[lane] = padded.floats + y * padded.stride + std::min(x + lane, row - 1);
      const auto exact = exact_sums(windows, padded.stride, trimmed);
      for (std::size_t lane = 0; lane < kLanes && x + lane < row; ++lane) sums[y * row + x + lane] = exact[lane];
    }
  }
}

// Bytes whose sums have to be torch's own. They wait until there are enough to be summed at once.
class Doubtful {
 public:
  Doubtful(const Padded& padded, const BlurWindow& window, std::uint8_t* blurred)
      : padded_(padded), window_(window), blurred_(blurred) {}

  [[gnu::always_inline]] void add(std::size_t place) {
    places_[waiting_++] = place;
    if (waiting_ == kLanes) settle();
  }

  [[gnu::always_inline]] void settle() {
    if (waiting_ == 0) return;
    const std::size_t row = side(padded_.size.width) * 3;
    Lanes windows{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t place = places_[std::min(lane, waiting_ - 1)];
      windows[lane] = padded_.floats + place / row * padded_.stride + place % row;
    }
    const auto exact = exact_sums(windows, padded_.stride, window_);
    for (std::size_t lane = 0; lane < waiting_; ++lane)
      blurred_[places_[lane]] = static_cast<std::uint8_t>(std::nearbyint(exact[lane]));
    waiting_ = 0;
  }

 private:
  const Padded padded_;
  const TrimmedWindow window_;
  std::uint8_t* const blurred_;
  std::array<std::size_t, kLanes> places_{};
  std::size_t waiting_ = 0;
};

// `across`: as many rows as the window has, of whole blocks. They hold the latest rows, weighted by the window's row.
[[gnu::always_inline]] inline void blur_all(Weigh weigh, const std::uint8_t* pixels, const Padded& padded,
                                            const BlurWindow& window, float* across, std::uint8_t* blurred) {
  pad(pixels, window, padded);
  const BlurPasses passes(window);
  const BlurUncertainty uncertainty = passes.uncertainty(window);
  Doubtful doubtful(padded, window, blurred);
  const std::size_t row = side(padded.size.width) * 3;
  const std::size_t across_stride = whole_blocks(row);
  const std::size_t count = passes.column().weights.size();
  const float* const first = padded.floats + passes.column().first * padded.stride + passes.row().first * 3;
  std::vector<const float*> shifted(passes.row().weights.size());
  for (std::size_t k = 0; k < shifted.size(); ++k) shifted[k] = first + 3 * k;
  std::vector<const float*> latest(count);
  for (std::size_t line = 0; line + 1 < side(padded.size.height) + count; ++line) {
    float* const weighted = across + line % count * across_stride;
    for (std::size_t x = 0; x < row; x += kBlock)
      weigh(shifted.data(), line * padded.stride + x, passes.row().weights, weighted + x);
    if (line + 1 < count) continue;

    const std::size_t y = line + 1 - count;
    for (std::size_t k = 0; k < count; ++k) latest[k] = across + (y + k) % count * across_stride;
    for (std::size_t x = 0; x < row; x += kBlock) {
      std::array<float, kBlock> sums;
      std::array<std::uint8_t, kBlock> bytes;
      std::array<std::uint8_t, kBlock> marks;
      weigh(latest.data(), x, passes.column().weights, sums.data());
      const bool marked = round_block(sums.data(), uncertainty, bytes.data(), marks.data());
      const std::size_t some = std::min(kBlock, row - x);
      std::copy_n(bytes.data(), some, blurred + y * row + x);
      for (std::size_t i = 0; marked && i < some; ++i) {
        if (marks[i] != 0) doubtful.add(y * row + x + i);
      }
    }
  }
  doubtful.settle();
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void blur_all_wide(const std::uint8_t* pixels, const Padded& padded,
                                                       const BlurWindow& window, float* across, std::uint8_t* blurred) {
  blur_all(weigh_widely, pixels, padded, window, across, blurred);
}

__attribute__((target("avx2,fma"))) void all_sums_wide(const std::uint8_t* pixels, const Padded& padded,
                                                       const BlurWindow& window, float* sums) {
  all_sums(pixels, padded, window, sums);
}

bool are_wide_with_fma(Registers registers) { return are_wide(registers) && __builtin_cpu_supports("fma") != 0; }
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
         sum_of_weights(window.weights) <= kLargestSum;
}

void GaussianBlur::make_room(ImageSize size, const BlurWindow& window) {
  const std::size_t padded = (side(size.height) + window.rows - 1) * padded_stride(size, window) + kBlock;
  const std::size_t across = window.rows * whole_blocks(side(size.width) * 3);
  padded_.resize(std::max(padded_.size(), padded));
  across_.resize(std::max(across_.size(), across));
}

void GaussianBlur::blur(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window,
                        std::span<std::uint8_t> blurred, [[maybe_unused]] Registers registers) {
  assert(can_blur(size, window));
  make_room(size, window);
  const Padded padded{padded_.data(), padded_stride(size, window), size};
#if defined(__x86_64__)
  if (are_wide_with_fma(registers)) return blur_all_wide(pixels.data(), padded, window, across_.data(), blurred.data());
#endif
  blur_all(weigh_anywhere, pixels.data(), padded, window, across_.data(), blurred.data());
}

void GaussianBlur::sums(ImageSize size, std::span<const std::uint8_t> pixels, const BlurWindow& window,
                        std::span<float> sums, [[maybe_unused]] Registers registers) {
  assert(can_blur(size, window));
  make_room(size, window);
  const Padded padded{padded_.data(), padded_stride(size, window), size};
#if defined(__x86_64__)
  if (are_wide_with_fma(registers)) return all_sums_wide(pixels.data(), padded, window, sums.data());
#endif
  all_sums(pixels.data(), padded, window, sums.data());
}

}  // namespace sluice::pipeline
