#include "src/pipeline/ops/blend.h"

#include <array>
#include <cstddef>

#include "src/pipeline/ops/luminance.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SLUICE_AVX2 __attribute__((target("avx2")))
#endif

namespace sluice::pipeline {
namespace {

constexpr std::size_t kBlockPixels = 64;
constexpr std::size_t kBlockBytes = 3 * kBlockPixels;

void blend_all(int level, float factor, Pixels pixels) {
  for (std::uint8_t& byte : pixels) byte = blend(level, byte, factor);
}

void blend_all_from_greys(float factor, Pixels pixels) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    const int grey = luminance(&pixels[i]);
    for (std::size_t channel = i; channel < i + 3; ++channel) pixels[channel] = blend(grey, pixels[channel], factor);
  }
}

void make_all_grey(Pixels pixels) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) std::fill_n(&pixels[i], 3, luminance(&pixels[i]));
}

// Inlined into a version for each processor, as vectors of which the loop then runs.
[[gnu::always_inline]] inline void find_greys(const std::uint8_t* rgb, std::array<std::uint8_t, kBlockPixels>& greys) {
  for (std::size_t i = 0; i < kBlockPixels; ++i) greys[i] = luminance(rgb + 3 * i);
}

[[gnu::always_inline]] inline std::uint64_t sum_all(std::span<const std::uint8_t> pixels) {
  std::uint64_t sum = 0;
  std::size_t start = 0;
  for (; start + kBlockBytes <= pixels.size(); start += kBlockBytes) {
    std::uint32_t block_sum = 0;
    for (std::size_t i = 0; i < kBlockPixels; ++i) block_sum += luminance(&pixels[start + 3 * i]);
    sum += block_sum;
  }
  for (; start < pixels.size(); start += 3) sum += luminance(&pixels[start]);
  return sum;
}

#if defined(__x86_64__)

constexpr std::size_t kVectorBytes = 32;

// Eight bytes. Differences of levels are exact as float32.
SLUICE_AVX2 inline __m256i blended_eight(__m128i from, __m128i to, __m256 factor) {
  const __m256 start = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(from));
  const __m256 end = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(to));
  const __m256 mixed = _mm256_add_ps(start, _mm256_mul_ps(factor, _mm256_sub_ps(end, start)));
  return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(mixed, _mm256_setzero_ps()), _mm256_set1_ps(255)));
}

SLUICE_AVX2 inline __m256i blended(__m256i from, __m256i to, __m256 factor) {
  const __m128i from_low = _mm256_castsi256_si128(from);
  const __m128i from_high = _mm256_extracti128_si256(from, 1);
  const __m128i to_low = _mm256_castsi256_si128(to);
  const __m128i to_high = _mm256_extracti128_si256(to, 1);
  const __m256i first = blended_eight(from_low, to_low, factor);
  const __m256i second = blended_eight(_mm_srli_si128(from_low, 8), _mm_srli_si128(to_low, 8), factor);
  const __m256i third = blended_eight(from_high, to_high, factor);
  const __m256i fourth = blended_eight(_mm_srli_si128(from_high, 8), _mm_srli_si128(to_high, 8), factor);
  const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(first, second), _mm256_packs_epi32(third, fourth));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));  // packing goes by halves
}

SLUICE_AVX2 inline __m256i load(const std::uint8_t* bytes) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
}

SLUICE_AVX2 inline void store(__m256i vector, std::uint8_t* bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(bytes), vector);
}

SLUICE_AVX2 void blend_all_avx2(int level, float factor, Pixels pixels) {
  const __m256i from = _mm256_set1_epi8(static_cast<char>(level));
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t at = 0;
  for (; at + kVectorBytes <= pixels.size(); at += kVectorBytes)
    store(blended(from, load(&pixels[at]), factors), &pixels[at]);
  blend_all(level, factor, pixels.subspan(at));
}

// Each grey three times.
SLUICE_AVX2 void repeat_greys(const std::array<std::uint8_t, kBlockPixels>& greys, std::uint8_t* repeated) {
  const __m128i first = _mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5);
  const __m128i second = _mm_setr_epi8(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10);
  const __m128i third = _mm_setr_epi8(10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15);
  for (std::size_t i = 0; i < kBlockPixels; i += 16) {
    const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&greys[i]));
    auto* const to = reinterpret_cast<__m128i*>(repeated + 3 * i);
    _mm_storeu_si128(to, _mm_shuffle_epi8(sixteen, first));
    _mm_storeu_si128(to + 1, _mm_shuffle_epi8(sixteen, second));
    _mm_storeu_si128(to + 2, _mm_shuffle_epi8(sixteen, third));
  }
}

SLUICE_AVX2 void blend_all_from_greys_avx2(float factor, Pixels pixels) {
  std::array<std::uint8_t, kBlockPixels> greys;
  std::array<std::uint8_t, kBlockBytes> from;
  const __m256 factors = _mm256_set1_ps(factor);
  std::size_t start = 0;
  for (; start + kBlockBytes <= pixels.size(); start += kBlockBytes) {
    find_greys(&pixels[start], greys);
    repeat_greys(greys, from.data());
    for (std::size_t at = 0; at < kBlockBytes; at += kVectorBytes) {
      std::uint8_t* const to = &pixels[start + at];
      store(blended(load(&from[at]), load(to), factors), to);
    }
  }
  blend_all_from_greys(factor, pixels.subspan(start));
}

SLUICE_AVX2 void make_all_grey_avx2(Pixels pixels) {
  std::array<std::uint8_t, kBlockPixels> greys;
  std::size_t start = 0;
  for (; start + kBlockBytes <= pixels.size(); start += kBlockBytes) {
    find_greys(&pixels[start], greys);
    repeat_greys(greys, &pixels[start]);
  }
  make_all_grey(pixels.subspan(start));
}

SLUICE_AVX2 std::uint64_t sum_all_avx2(std::span<const std::uint8_t> pixels) { return sum_all(pixels); }

#endif

}  // namespace

void blend_from_level(int level, float factor, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide(registers)) return blend_all_avx2(level, factor, pixels);
#endif
  blend_all(level, factor, pixels);
}

void blend_from_greys(float factor, Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide(registers)) return blend_all_from_greys_avx2(factor, pixels);
#endif
  blend_all_from_greys(factor, pixels);
}

void make_grey(Pixels pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide(registers)) return make_all_grey_avx2(pixels);
#endif
  make_all_grey(pixels);
}

std::uint64_t sum_of_greys(std::span<const std::uint8_t> pixels, [[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
  if (are_wide(registers)) return sum_all_avx2(pixels);
#endif
  return sum_all(pixels);
}

}  // namespace sluice::pipeline
