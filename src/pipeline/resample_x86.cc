// The kernels with the integer vectors of x86 processors. A weight has more bits than a multiply-add instruction takes
// (16, or 8). So it is taken in parts, whose sums are put together modulo 2^32. Both variants of the horizontal pass
// make one output pixel of four rows at a time, so that weights are loaded once for four rows.
#include "src/pipeline/resample_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#define SLUICE_AVX2 __attribute__((target("avx2")))
#define SLUICE_VNNI __attribute__((target("avx2,avx512vl,avx512vnni")))

namespace sluice::pipeline {
namespace {

constexpr std::size_t kVectorBytes = 32;

// The rows that a call works on. Missing rows repeat the last one: computed in vain, but without a branch in the loops.
struct FourRows {
  FourRows(const std::uint8_t* const* from, std::uint8_t* const* to, int row_count) {
    for (int row = 0; row < kRowsPerCall; ++row) {
      sources[row] = from[std::min(row, row_count - 1)];
      targets[row] = to[std::min(row, row_count - 1)];
    }
  }

  const std::uint8_t* sources[kRowsPerCall];
  std::uint8_t* targets[kRowsPerCall];
};

SLUICE_AVX2 inline __m256i rounded(__m256i sum) {
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kRoundingHalf)), kWeightBits);
}

// Adds the two halves of each argument and rounds. The first argument's sums are in the lower 128 bits of the result,
// the second's in the upper.
SLUICE_AVX2 inline __m256i rounded_pair(__m256i first, __m256i second) {
  return rounded(
      _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20), _mm256_permute2x128_si256(first, second, 0x31)));
}

// The sums of four rows as bytes, in order; `even` holds rows 0 and 2, `odd` rows 1 and 3.
SLUICE_AVX2 inline __m128i packed(__m256i even, __m256i odd) {
  const __m256i words = _mm256_packs_epi32(even, odd);
  const __m256i bytes = _mm256_packus_epi16(words, words);
  return _mm_unpacklo_epi64(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

// One output pixel of four rows, four bytes each: red, green, blue and one that is not used. While summing, the lower
// 128 bits take the first two taps of a group, the upper ones the other two.
SLUICE_AVX2 inline __m128i four_pixels_avx2(const AxisTaps& taps, const AxisTaps::Output& output,
                                            const FourRows& rows) {
  const __m256i channels = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i high_pairs = _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,  //
                                              4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  const __m256i low_pairs = _mm256_add_epi8(high_pairs, _mm256_set1_epi8(8));
  const AxisTaps::Group* group = &taps.groups[output.first_group];
  std::size_t offset = static_cast<std::size_t>(output.first_input) * 3;
  __m256i sums[kRowsPerCall];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int tap = 0; tap < output.count; tap += kTapsPerGroup, ++group, offset += 3 * kTapsPerGroup) {
    const __m256i weights = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(group)));
    const __m256i high_weights = _mm256_shuffle_epi8(weights, high_pairs);
    const __m256i low_weights = _mm256_shuffle_epi8(weights, low_pairs);
    for (int row = 0; row < kRowsPerCall; ++row) {
      const auto* source = reinterpret_cast<const __m128i*>(rows.sources[row] + offset);
      const __m256i values = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(source)), channels);
      const __m256i high = _mm256_slli_epi32(_mm256_madd_epi16(values, high_weights), kLowBits);
      const __m256i low = _mm256_madd_epi16(values, low_weights);
      sums[row] = _mm256_add_epi32(sums[row], _mm256_add_epi32(high, low));
    }
  }
  return packed(rounded_pair(sums[0], sums[2]), rounded_pair(sums[1], sums[3]));
}

// Four taps of two rows, one row in each 128 bits: four bytes of red, of green, of blue, and four zeros.
SLUICE_VNNI inline __m256i two_rows(const std::uint8_t* lower, const std::uint8_t* upper) {
  const __m256i channels =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1));
  const __m256i lower_only = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(lower)));
  const __m128i upper_only = _mm_loadu_si128(reinterpret_cast<const __m128i*>(upper));
  return _mm256_shuffle_epi8(_mm256_inserti128_si256(lower_only, upper_only, 1), channels);
}

// The sum of which these are the digits to the base 256, rounded.
SLUICE_VNNI inline __m256i rounded_digits(const __m256i* digits) {
  const __m256i upper = _mm256_add_epi32(_mm256_slli_epi32(digits[1], 8), _mm256_slli_epi32(digits[2], 16));
  return rounded(_mm256_add_epi32(digits[0], upper));
}

// As four_pixels_avx2, with the instruction that multiplies unsigned with signed bytes and adds four products at once.
// A weight is three digits to the base 256, and each 128 bits take one row with all taps of a group.
SLUICE_VNNI inline __m128i four_pixels_vnni(const AxisTaps& taps, const AxisTaps::Output& output,
                                            const FourRows& rows) {
  const AxisTaps::Group* group = &taps.groups[output.first_group];
  std::size_t offset = static_cast<std::size_t>(output.first_input) * 3;
  __m256i even_sums[kDigits];
  __m256i odd_sums[kDigits];
  for (int digit = 0; digit < kDigits; ++digit) even_sums[digit] = odd_sums[digit] = _mm256_setzero_si256();
  int tap = 0;
  do {
    const __m256i even_rows = two_rows(rows.sources[0] + offset, rows.sources[2] + offset);
    const __m256i odd_rows = two_rows(rows.sources[1] + offset, rows.sources[3] + offset);
    for (int digit = 0; digit < kDigits; ++digit) {
      std::int32_t four_weights;
      std::memcpy(&four_weights, group->digits[digit], sizeof four_weights);
      const __m256i weights = _mm256_set1_epi32(four_weights);
      even_sums[digit] = _mm256_dpbusd_epi32(even_sums[digit], even_rows, weights);
      odd_sums[digit] = _mm256_dpbusd_epi32(odd_sums[digit], odd_rows, weights);
    }
    tap += kTapsPerGroup;
    offset += 3 * kTapsPerGroup;
    ++group;
  } while (tap < output.count);
  return packed(rounded_digits(even_sums), rounded_digits(odd_sums));
}

// Two neighbouring pixels of four rows each, put together to eight bytes a row: six of pixels and two of zeros.
// `front` gets rows 0 and 1, `back` rows 2 and 3.
SLUICE_AVX2 inline void interleave(__m128i left, __m128i right, __m128i& front, __m128i& back) {
  const __m128i compact = _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, 8, 9, 10, 12, 13, 14, -1, -1);
  front = _mm_shuffle_epi8(_mm_unpacklo_epi32(left, right), compact);
  back = _mm_shuffle_epi8(_mm_unpackhi_epi32(left, right), compact);
}

// Stores two pixels a row and, behind them, two bytes that a later store overwrites.
SLUICE_AVX2 inline void store_pairs(const FourRows& rows, std::size_t offset, __m128i left, __m128i right) {
  __m128i front;
  __m128i back;
  interleave(left, right, front, back);
  _mm_storel_pi(reinterpret_cast<__m64*>(rows.targets[0] + offset), _mm_castsi128_ps(front));
  _mm_storeh_pi(reinterpret_cast<__m64*>(rows.targets[1] + offset), _mm_castsi128_ps(front));
  _mm_storel_pi(reinterpret_cast<__m64*>(rows.targets[2] + offset), _mm_castsi128_ps(back));
  _mm_storeh_pi(reinterpret_cast<__m64*>(rows.targets[3] + offset), _mm_castsi128_ps(back));
}

// Stores the last one or two pixels of each row, and not a byte more.
SLUICE_AVX2 inline void store_last(const FourRows& rows, std::size_t offset, __m128i left, __m128i right,
                                   std::size_t pixels) {
  __m128i front;
  __m128i back;
  interleave(left, right, front, back);
  alignas(16) std::array<std::uint8_t, 32> bytes;
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes.data()), front);
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes.data() + 16), back);
  for (std::size_t row = 0; row < kRowsPerCall; ++row) {
    std::memcpy(rows.targets[row] + offset, bytes.data() + 8 * row, pixels * 3);
  }
}

// The loop over a row's pixels is the same for both variants. A function compiled for one instruction set cannot take
// another's by template and still be inlined: hence a macro.
#define SLUICE_HORIZONTAL(four_pixels)                                            \
  const FourRows rows(sources, targets, row_count);                               \
  const std::size_t count = taps.outputs.size();                                  \
  std::size_t i = 0;                                                              \
  for (; i + 3 <= count; i += 2) {                                                \
    const __m128i left = four_pixels(taps, taps.outputs[i], rows);                \
    store_pairs(rows, 3 * i, left, four_pixels(taps, taps.outputs[i + 1], rows)); \
  }                                                                               \
  const __m128i left = four_pixels(taps, taps.outputs[i], rows);                  \
  store_last(rows, 3 * i, left, four_pixels(taps, taps.outputs[count - 1], rows), count - i)

SLUICE_AVX2 void horizontal_avx2(const AxisTaps& taps, const std::uint8_t* const* sources, std::uint8_t* const* targets,
                                 int row_count) {
  SLUICE_HORIZONTAL(four_pixels_avx2);
}

SLUICE_VNNI void horizontal_vnni(const AxisTaps& taps, const std::uint8_t* const* sources, std::uint8_t* const* targets,
                                 int row_count) {
  SLUICE_HORIZONTAL(four_pixels_vnni);
}

#undef SLUICE_HORIZONTAL

// The sum of which `high` and `low` are the parts, rounded.
SLUICE_AVX2 inline __m256i with_low(__m256i high, __m256i low) {
  return rounded(_mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low));
}

// 32 columns of one output row.
SLUICE_AVX2 inline __m256i vertical_block(const AxisTaps::Group* groups, int count, const std::uint8_t* source,
                                          std::size_t stride_bytes) {
  __m256i high[4];
  __m256i low[4];
  for (int part = 0; part < 4; ++part) high[part] = low[part] = _mm256_setzero_si256();
  const __m256i zero = _mm256_setzero_si256();
  for (int tap = 0; tap < count; tap += 2, source += 2 * stride_bytes) {
    const AxisTaps::Group& group = groups[tap / kTapsPerGroup];
    const int pair = tap % kTapsPerGroup;
    std::int32_t high_pair;
    std::int32_t low_pair;
    std::memcpy(&high_pair, group.high + pair, sizeof high_pair);
    std::memcpy(&low_pair, group.low + pair, sizeof low_pair);
    const __m256i high_weights = _mm256_set1_epi32(high_pair);
    const __m256i low_weights = _mm256_set1_epi32(low_pair);

    const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
    // An odd last tap has a partner of weight zero, whose row may not exist.
    const std::uint8_t* partner = tap + 1 < count ? source + stride_bytes : source;
    const __m256i lower = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(partner));
    const __m256i first = _mm256_unpacklo_epi8(upper, lower);
    const __m256i second = _mm256_unpackhi_epi8(upper, lower);
    const __m256i pairs[4] = {_mm256_unpacklo_epi8(first, zero), _mm256_unpackhi_epi8(first, zero),
                              _mm256_unpacklo_epi8(second, zero), _mm256_unpackhi_epi8(second, zero)};
    for (int part = 0; part < 4; ++part) {
      high[part] = _mm256_add_epi32(high[part], _mm256_madd_epi16(pairs[part], high_weights));
      low[part] = _mm256_add_epi32(low[part], _mm256_madd_epi16(pairs[part], low_weights));
    }
  }
  // Packing works within 128 bits, as unpacking did: the columns are back in order.
  const __m256i first = _mm256_packs_epi32(with_low(high[0], low[0]), with_low(high[1], low[1]));
  const __m256i second = _mm256_packs_epi32(with_low(high[2], low[2]), with_low(high[3], low[3]));
  return _mm256_packus_epi16(first, second);
}

SLUICE_AVX2 void vertical(const AxisTaps& taps, const AxisTaps::Output& output, const std::uint8_t* source,
                          std::size_t stride_bytes, std::uint8_t* target, std::size_t row_bytes) {
  const AxisTaps::Group* groups = &taps.groups[output.first_group];
  std::size_t column = 0;
  for (; column + kVectorBytes <= row_bytes; column += kVectorBytes) {
    const __m256i bytes = vertical_block(groups, output.count, source + column, stride_bytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + column), bytes);
  }
  if (column == row_bytes) return;
  alignas(kVectorBytes) std::array<std::uint8_t, kVectorBytes> tail;
  _mm256_store_si256(reinterpret_cast<__m256i*>(tail.data()),
                     vertical_block(groups, output.count, source + column, stride_bytes));
  std::memcpy(target + column, tail.data(), row_bytes - column);
}

}  // namespace

std::vector<const ResampleKernels*> x86_kernels() {
  static constexpr ResampleKernels kAvx2{"avx2", horizontal_avx2, vertical};
  static constexpr ResampleKernels kVnni{"avx512-vnni", horizontal_vnni, vertical};
  std::vector<const ResampleKernels*> kernels;
  if (__builtin_cpu_supports("avx2")) kernels.push_back(&kAvx2);
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) kernels.push_back(&kVnni);
  return kernels;
}

}  // namespace sluice::pipeline

#else

namespace sluice::pipeline {

std::vector<const ResampleKernels*> x86_kernels() { return {}; }

}  // namespace sluice::pipeline

#endif
