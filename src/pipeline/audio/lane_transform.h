// The discrete Fourier transforms of eight frames at once, as Stockham's algorithm orders them: each stage reads one
// buffer and writes another, with no reordering at the end (C. Van Loan, "Computational Frameworks for the Fast Fourier
// Transform", 1992, section 1.7). Lengths are products of primes up to kLargestRadix.
//
// Thread safety: a LaneTransform is immutable.
#pragma once

#include <cstddef>
#include <vector>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

inline constexpr std::size_t kLargestRadix = 31;

struct Root {
  float re, im;
};

struct TransformStage {
  std::size_t radix;
  std::size_t groups;              // length of what this stage divides, over its radix
  std::size_t stride;              // product of the radices before it
  std::vector<Root> twiddles;      // [groups][radix - 1]: powers of the root of unity of radix * groups
  std::vector<Root> radix_powers;  // of the root of unity of the radix
};

class LaneTransform {
 public:
  // Whether `length` has no prime factor above kLargestRadix. False for 0.
  static bool supports(std::size_t length);

  // REQUIRES: supports(length)
  explicit LaneTransform(std::size_t length);

  std::size_t length() const { return length_; }
  const std::vector<TransformStage>& stages() const { return stages_; }

 private:
  std::size_t length_;
  std::vector<TransformStage> stages_;
};

// exp(-2 pi i k / n), rounded to float.
Root root_of_unity(std::size_t k, std::size_t n);

// (a + b i)(root), for lanes.
SLUICE_INLINE void multiply(const Lanes& re, const Lanes& im, const Root& root, ComplexLanes& product) {
  product.re = re * root.re - im * root.im;
  product.im = re * root.im + im * root.re;
}

template <bool kTwiddled>
SLUICE_INLINE void butterfly_of_2(const ComplexLanes* from, std::size_t distance, ComplexLanes* to, std::size_t stride,
                                  const Root* twiddles) {
  const ComplexLanes& a = from[0];
  const ComplexLanes& b = from[distance];
  const Lanes re = a.re - b.re;
  const Lanes im = a.im - b.im;
  to[0].re = a.re + b.re;
  to[0].im = a.im + b.im;
  if constexpr (kTwiddled) {
    multiply(re, im, twiddles[0], to[stride]);
  } else {
    to[stride].re = re, to[stride].im = im;
  }
}

template <bool kTwiddled>
SLUICE_INLINE void butterfly_of_4(const ComplexLanes* from, std::size_t distance, ComplexLanes* to, std::size_t stride,
                                  const Root* twiddles) {
  const ComplexLanes& a = from[0];
  const ComplexLanes& b = from[distance];
  const ComplexLanes& c = from[2 * distance];
  const ComplexLanes& d = from[3 * distance];
  const Lanes sum_ac_re = a.re + c.re, sum_ac_im = a.im + c.im;
  const Lanes sum_bd_re = b.re + d.re, sum_bd_im = b.im + d.im;
  const Lanes difference_ac_re = a.re - c.re, difference_ac_im = a.im - c.im;
  const Lanes difference_bd_re = b.re - d.re, difference_bd_im = b.im - d.im;
  to[0].re = sum_ac_re + sum_bd_re;
  to[0].im = sum_ac_im + sum_bd_im;
  const Lanes first_re = difference_ac_re + difference_bd_im, first_im = difference_ac_im - difference_bd_re;
  const Lanes second_re = sum_ac_re - sum_bd_re, second_im = sum_ac_im - sum_bd_im;
  const Lanes third_re = difference_ac_re - difference_bd_im, third_im = difference_ac_im + difference_bd_re;
  if constexpr (kTwiddled) {
    multiply(first_re, first_im, twiddles[0], to[stride]);
    multiply(second_re, second_im, twiddles[1], to[2 * stride]);
    multiply(third_re, third_im, twiddles[2], to[3 * stride]);
  } else {
    to[stride].re = first_re, to[stride].im = first_im;
    to[2 * stride].re = second_re, to[2 * stride].im = second_im;
    to[3 * stride].re = third_re, to[3 * stride].im = third_im;
  }
}

// An odd radix: inputs j and radix - j have conjugate factors, so their sums and differences are multiplied by real
// numbers. kRadix 0: the radix is `radix`.
template <std::size_t kRadix>
SLUICE_INLINE void odd_butterfly(const ComplexLanes* from, std::size_t distance, ComplexLanes* to, std::size_t stride,
                                 std::size_t radix, const Root* powers, const Root* twiddles) {
  constexpr std::size_t kHalfMax = ((kRadix == 0 ? kLargestRadix : kRadix) - 1) / 2;
  const std::size_t half = kRadix == 0 ? (radix - 1) / 2 : kHalfMax;
  if constexpr (kRadix != 0) radix = kRadix;
  ComplexLanes sums[kHalfMax];
  ComplexLanes differences[kHalfMax];
  Lanes total_re = from[0].re, total_im = from[0].im;
  for (std::size_t j = 0; j < half; ++j) {
    const ComplexLanes& a = from[(j + 1) * distance];
    const ComplexLanes& b = from[(radix - 1 - j) * distance];
    sums[j].re = a.re + b.re, sums[j].im = a.im + b.im;
    differences[j].re = a.re - b.re, differences[j].im = a.im - b.im;
    total_re += sums[j].re, total_im += sums[j].im;
  }
  to[0].re = total_re, to[0].im = total_im;
  for (std::size_t k = 1; k <= half; ++k) {
    Lanes even_re = from[0].re, even_im = from[0].im;
    Lanes odd_re = {}, odd_im = {};
    for (std::size_t j = 0; j < half; ++j) {
      const Root power = powers[k * (j + 1) % radix];
      even_re += sums[j].re * power.re, even_im += sums[j].im * power.re;
      odd_re += differences[j].im * power.im, odd_im += differences[j].re * power.im;
    }
    multiply(even_re - odd_re, even_im + odd_im, twiddles[k - 1], to[k * stride]);
    multiply(even_re + odd_re, even_im - odd_im, twiddles[radix - 1 - k], to[(radix - k) * stride]);
  }
}

SLUICE_INLINE void run_stage(const TransformStage& stage, const ComplexLanes* from, ComplexLanes* to) {
  const std::size_t stride = stage.stride;
  const std::size_t distance = stage.groups * stride;
  for (std::size_t group = 0; group < stage.groups; ++group) {
    const Root* const twiddles = stage.twiddles.data() + group * (stage.radix - 1);
    const ComplexLanes* const x = from + group * stride;
    ComplexLanes* const y = to + group * stride * stage.radix;
    if (stage.radix == 4 && group == 0) {
      for (std::size_t q = 0; q < stride; ++q) butterfly_of_4<false>(x + q, distance, y + q, stride, twiddles);
    } else if (stage.radix == 4) {
      for (std::size_t q = 0; q < stride; ++q) butterfly_of_4<true>(x + q, distance, y + q, stride, twiddles);
    } else if (stage.radix == 2 && group == 0) {
      for (std::size_t q = 0; q < stride; ++q) butterfly_of_2<false>(x + q, distance, y + q, stride, twiddles);
    } else if (stage.radix == 2) {
      for (std::size_t q = 0; q < stride; ++q) butterfly_of_2<true>(x + q, distance, y + q, stride, twiddles);
    } else if (stage.radix == 3) {
      for (std::size_t q = 0; q < stride; ++q) {
        odd_butterfly<3>(x + q, distance, y + q, stride, 3, stage.radix_powers.data(), twiddles);
      }
    } else if (stage.radix == 5) {
      for (std::size_t q = 0; q < stride; ++q) {
        odd_butterfly<5>(x + q, distance, y + q, stride, 5, stage.radix_powers.data(), twiddles);
      }
    } else {
      for (std::size_t q = 0; q < stride; ++q) {
        odd_butterfly<0>(x + q, distance, y + q, stride, stage.radix, stage.radix_powers.data(), twiddles);
      }
    }
  }
}

// Transforms `data` of the plan's length; `spare` has as much. Returns the one of both that holds the result.
SLUICE_INLINE ComplexLanes* run(const LaneTransform& transform, ComplexLanes* data, ComplexLanes* spare) {
  for (const TransformStage& stage : transform.stages()) {
    run_stage(stage, data, spare);
    ComplexLanes* const result = spare;
    spare = data;
    data = result;
  }
  return data;
}

}  // namespace sluice::pipeline::audio
