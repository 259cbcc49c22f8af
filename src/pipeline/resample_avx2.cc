// The kernels with 256-bit integer vectors. A weight does not fit into the 16 bits that the multiply-add instruction
// takes, so every sum is made of two, one for each half of the weights, and put together at the end.
#include "src/pipeline/resample_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#define SLUICE_AVX2 __attribute__((target("avx2")))

namespace sluice::pipeline {
namespace {

constexpr std::size_t kVectorBytes = 32;

// The two halves of a sum, put together, rounded and shifted down to the range of a byte.
SLUICE_AVX2 inline __m256i combined(__m256i high, __m256i low) {
  const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(kRoundingHalf)), kWeightBits);
}

// The same for sums whose even taps are in the lower and odd taps in the upper 128 bits.
SLUICE_AVX2 inline __m128i combined_lanes(__m256i high, __m256i low) {
  const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low);
  const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return _mm_srai_epi32(_mm_add_epi32(both, _mm_set1_epi32(kRoundingHalf)), kWeightBits);
}

// One output pixel of four rows. Each lane holds red, green and blue sums and one that is not used; the lower 128 bits
// take the first two taps of a group, the upper ones the other two.
SLUICE_AVX2 inline __m128i four_pixels(const AxisTaps::Group* groups, int count,
                                       const std::array<const std::uint8_t*, kRowsPerCall>& pixels) {
  const __m256i channels = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i high_pairs = _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,  //
                                              4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  const __m256i low_pairs = _mm256_add_epi8(high_pairs, _mm256_set1_epi8(8));
  __m256i high[kRowsPerCall];
  __m256i low[kRowsPerCall];
  for (int row = 0; row < kRowsPerCall; ++row) high[row] = low[row] = _mm256_setzero_si256();

  for (int tap = 0; tap < count; tap += kTapsPerGroup, ++groups) {
    const __m256i weights = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(groups)));
    const __m256i high_weights = _mm256_shuffle_epi8(weights, high_pairs);
    const __m256i low_weights = _mm256_shuffle_epi8(weights, low_pairs);
    for (int row = 0; row < kRowsPerCall; ++row) {
      const auto* source = reinterpret_cast<const __m128i*>(pixels[static_cast<std::size_t>(row)] + 3 * tap);
      const __m256i values = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(source)), channels);
      high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(values, high_weights));
      low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(values, low_weights));
    }
  }
  const __m128i first = _mm_packs_epi32(combined_lanes(high[0], low[0]), combined_lanes(high[1], low[1]));
  const __m128i second = _mm_packs_epi32(combined_lanes(high[2], low[2]), combined_lanes(high[3], low[3]));
  return _mm_packus_epi16(first, second);
}

SLUICE_AVX2 inline std::array<int, kRowsPerCall> four_quads(const AxisTaps& taps, const AxisTaps::Output& output,
                                                            const std::array<const std::uint8_t*, kRowsPerCall>& rows) {
  const std::size_t offset = static_cast<std::size_t>(output.first_input) * 3;
  const __m128i bytes = four_pixels(&taps.groups[output.first_group], output.count,
                                    {rows[0] + offset, rows[1] + offset, rows[2] + offset, rows[3] + offset});
  return {_mm_cvtsi128_si32(bytes), _mm_extract_epi32(bytes, 1), _mm_extract_epi32(bytes, 2),
          _mm_extract_epi32(bytes, 3)};
}

SLUICE_AVX2 void horizontal(const AxisTaps& taps, const std::uint8_t* const* sources, std::uint8_t* const* targets,
                            int row_count) {
  std::array<const std::uint8_t*, kRowsPerCall> rows;
  std::array<std::uint8_t*, kRowsPerCall> out;
  for (std::size_t row = 0; row < kRowsPerCall; ++row) {
    // Missing rows repeat the last one: computed in vain, but without a branch in the loop.
    const int existing = std::min(static_cast<int>(row), row_count - 1);
    rows[row] = sources[existing];
    out[row] = targets[existing];
  }
  // Four bytes are stored for a pixel of three; the next pixel overwrites the fourth. The last pixel has no next one.
  const std::size_t last = taps.outputs.size() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    const std::array<int, kRowsPerCall> quads = four_quads(taps, taps.outputs[i], rows);
    for (std::size_t row = 0; row < kRowsPerCall; ++row) std::memcpy(out[row] + 3 * i, &quads[row], 4);
  }
  const std::array<int, kRowsPerCall> quads = four_quads(taps, taps.outputs[last], rows);
  for (std::size_t row = 0; row < kRowsPerCall; ++row) std::memcpy(out[row] + 3 * last, &quads[row], 3);
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
  const __m256i first = _mm256_packs_epi32(combined(high[0], low[0]), combined(high[1], low[1]));
  const __m256i second = _mm256_packs_epi32(combined(high[2], low[2]), combined(high[3], low[3]));
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

const ResampleKernels* avx2_kernels() {
  static constexpr ResampleKernels kKernels{"avx2", horizontal, vertical};
  return __builtin_cpu_supports("avx2") ? &kKernels : nullptr;
}

}  // namespace sluice::pipeline

#else

namespace sluice::pipeline {

const ResampleKernels* avx2_kernels() { return nullptr; }

}  // namespace sluice::pipeline

#endif
