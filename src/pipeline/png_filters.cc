#include "src/pipeline/png_filters.h"

#include <cstdlib>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sluice::pipeline {
namespace {

std::uint8_t paeth(int left, int above, int corner) {
  const int from_left = std::abs(above - corner);
  const int from_above = std::abs(left - corner);
  const int from_corner = std::abs(left + above - 2 * corner);
  if (from_left <= from_above && from_left <= from_corner) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(from_above <= from_corner ? above : corner);
}

void add_above(const std::uint8_t* __restrict above, std::span<std::uint8_t> row) {
  std::uint8_t* __restrict bytes = row.data();
  for (std::size_t i = 0; i < row.size(); ++i) bytes[i] = static_cast<std::uint8_t>(bytes[i] + above[i]);
}

#if defined(__SSE2__)

// A pixel of so many bytes in a register, one byte a lane or, widened, two. The lanes behind it hold anything.
template <std::size_t kBytes>
__m128i load(const std::uint8_t* from) {
  std::uint64_t pixel = 0;
  std::memcpy(&pixel, from, kBytes <= 4 ? 4 : 8);
  return _mm_cvtsi64_si128(static_cast<long long>(pixel));
}

template <std::size_t kBytes>
void store(__m128i pixel, std::uint8_t* to) {
  const auto bytes = _mm_cvtsi128_si64(pixel);
  std::memcpy(to, &bytes, kBytes);
}

__m128i widened(__m128i pixel) { return _mm_unpacklo_epi8(pixel, _mm_setzero_si128()); }
__m128i absolute(__m128i lanes) { return _mm_max_epi16(lanes, _mm_sub_epi16(_mm_setzero_si128(), lanes)); }
__m128i chosen(__m128i mask, __m128i yes, __m128i no) {
  return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

template <std::size_t kBytes>
void undo_left(std::span<std::uint8_t> row) {
  __m128i left = _mm_setzero_si128();
  for (std::size_t i = 0; i < row.size(); i += kBytes) {
    left = _mm_add_epi8(left, load<kBytes>(&row[i]));
    store<kBytes>(left, &row[i]);
  }
}

// The average of two bytes, rounded down: that of the instruction is rounded up.
template <std::size_t kBytes>
void undo_average(const std::uint8_t* above, std::span<std::uint8_t> row) {
  __m128i left = _mm_setzero_si128();
  for (std::size_t i = 0; i < row.size(); i += kBytes) {
    const __m128i up = load<kBytes>(above + i);
    const __m128i odd = _mm_and_si128(_mm_xor_si128(left, up), _mm_set1_epi8(1));
    left = _mm_add_epi8(_mm_sub_epi8(_mm_avg_epu8(left, up), odd), load<kBytes>(&row[i]));
    store<kBytes>(left, &row[i]);
  }
}

template <std::size_t kBytes>
void undo_paeth(const std::uint8_t* above, std::span<std::uint8_t> row) {
  __m128i left = _mm_setzero_si128();
  __m128i corner = _mm_setzero_si128();
  for (std::size_t i = 0; i < row.size(); i += kBytes) {
    const __m128i up = widened(load<kBytes>(above + i));
    const __m128i towards_left = _mm_sub_epi16(up, corner);
    const __m128i towards_up = _mm_sub_epi16(left, corner);
    const __m128i from_left = absolute(towards_left);
    const __m128i from_up = absolute(towards_up);
    const __m128i from_corner = absolute(_mm_add_epi16(towards_left, towards_up));
    const __m128i least = _mm_min_epi16(from_corner, _mm_min_epi16(from_left, from_up));
    const __m128i nearest =
        chosen(_mm_cmpeq_epi16(least, from_left), left, chosen(_mm_cmpeq_epi16(least, from_up), up, corner));
    left = _mm_add_epi8(nearest, widened(load<kBytes>(&row[i])));
    corner = up;
    store<kBytes>(_mm_packus_epi16(left, left), &row[i]);
  }
}

template <std::size_t kBytes>
void undo(PngFilter filter, const std::uint8_t* above, std::span<std::uint8_t> row) {
  switch (filter) {
    case PngFilter::kLeft: return undo_left<kBytes>(row);
    case PngFilter::kAverage: return undo_average<kBytes>(above, row);
    case PngFilter::kPaeth: return undo_paeth<kBytes>(above, row);
    case PngFilter::kNone:
    case PngFilter::kAbove: break;
  }
}

#endif

}  // namespace

void undo_filter_portably(PngFilter filter, std::size_t distance_bytes, const std::uint8_t* above,
                          std::span<std::uint8_t> row) {
  if (filter == PngFilter::kAbove) return add_above(above, row);
  if (filter == PngFilter::kNone) return;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const bool is_first = i < distance_bytes;
    const int left = is_first ? 0 : row[i - distance_bytes];
    const int corner = is_first ? 0 : above[i - distance_bytes];
    const int predicted = filter == PngFilter::kLeft      ? left
                          : filter == PngFilter::kAverage ? (left + above[i]) / 2
                                                          : paeth(left, above[i], corner);
    row[i] = static_cast<std::uint8_t>(row[i] + predicted);
  }
}

void undo_filter(PngFilter filter, std::size_t distance_bytes, const std::uint8_t* above, std::span<std::uint8_t> row) {
#if defined(__SSE2__)
  if (filter == PngFilter::kAbove || filter == PngFilter::kNone) {
    return undo_filter_portably(filter, distance_bytes, above, row);
  }
  switch (distance_bytes) {
    case 3: return undo<3>(filter, above, row);
    case 4: return undo<4>(filter, above, row);
    case 6: return undo<6>(filter, above, row);
    case 8: return undo<8>(filter, above, row);
    default: break;
  }
#endif
  undo_filter_portably(filter, distance_bytes, above, row);
}

}  // namespace sluice::pipeline
