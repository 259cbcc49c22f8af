// The kernels for x86 processors with AVX2 and BMI2. Those of the transform and of colours work as libjpeg-turbo's.
#include "src/pipeline/jpeg_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "src/pipeline/jpeg_block_packing.h"
#include "src/pipeline/jpeg_block_reader.h"
#include "src/pipeline/jpeg_transform.h"

#define SLUICE_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

namespace sluice::pipeline {
namespace {

// Eight rows of eight words. Row 4 is in the upper half of the first register with row 0, and so on.
struct Rows {
  __m256i row04, row15, row26, row37;
};

SLUICE_AVX2 std::uint32_t read_block(BitReader& reader, BlockCoding& coding, CoefficientBlock& block) {
  auto* const quarters = reinterpret_cast<__m256i*>(block.values);
  for (int i = 0; i < 4; ++i) _mm256_store_si256(quarters + i, _mm256_setzero_si256());
  return read_block_inline(reader, coding, block);
}

SLUICE_AVX2 bool skip_block(BitReader& reader, BlockCoding& coding) { return skip_block_inline(reader, coding); }

// For a byte of bits the places of those that are set, and for each bit its number among those: what pshufb needs to
// pack eight bytes and to spread them.
struct ByteShuffles {
  std::uint64_t pack[256];
  std::uint64_t spread[256];
};

constexpr ByteShuffles kShuffles = [] {
  ByteShuffles shuffles{};
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    std::uint64_t pack = ~std::uint64_t{0};  // a place of 255 gives zero
    std::uint64_t spread = ~std::uint64_t{0};
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      if ((bits >> i & 1U) == 0) continue;
      pack ^= std::uint64_t{0xFFU ^ i} << 8 * count;
      spread ^= std::uint64_t{0xFFU ^ count++} << 8 * i;
    }
    shuffles.pack[bits] = pack;
    shuffles.spread[bits] = spread;
  }
  return shuffles;
}();

SLUICE_AVX2 inline __m128i load_eight(const void* from) { return _mm_loadl_epi64(static_cast<const __m128i*>(from)); }

SLUICE_AVX2 inline __m128i spread(const std::uint8_t* from, std::uint64_t bits) {
  return _mm_shuffle_epi8(load_eight(from), load_eight(&kShuffles.spread[bits]));
}

SLUICE_AVX2 std::uint32_t pack_block(const CoefficientBlock& block, std::uint8_t* packed) {
  if (!can_pack_first(block.values[0])) return 0;
  const auto* rows = reinterpret_cast<const __m128i*>(block.values);
  const __m128i zero = _mm_setzero_si128();
  __m128i bytes[8];
  __m128i lost = zero;
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) {
    __m128i row = _mm_load_si128(rows + i);
    if (i == 0) row = _mm_insert_epi16(row, 0, 0);
    bytes[i] = _mm_packs_epi16(row, zero);
    lost = _mm_or_si128(lost, _mm_xor_si128(row, _mm_cvtepi8_epi16(bytes[i])));
    const auto zeros = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes[i], zero)));
    bits |= std::uint64_t{~zeros & 0xFFU} << 8 * i;
  }
  if (_mm_testz_si128(lost, lost) == 0) return pack_block_simply(block, packed);
  store_packed_first(packed, block.values[0], false);
  const __m128i row_bits = _mm_cvtsi64_si128(static_cast<std::int64_t>(bits));
  const auto empty = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(row_bits, zero)));
  const std::uint32_t filled = ~empty & 0xFFU;
  packed[2] = static_cast<std::uint8_t>(filled);
  std::uint8_t* next = packed + kPackedFixedBytes;
  _mm_storel_epi64(reinterpret_cast<__m128i*>(next), _mm_shuffle_epi8(row_bits, load_eight(&kShuffles.pack[filled])));
  next += _mm_popcnt_u32(filled);
  for (int i = 0; i < 8; ++i, bits >>= 8) {
    const __m128i values = _mm_shuffle_epi8(bytes[i], load_eight(&kShuffles.pack[bits & 0xFFU]));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(next), values);
    next += _mm_popcnt_u32(static_cast<std::uint32_t>(bits & 0xFFU));
  }
  return static_cast<std::uint32_t>(next - packed);
}

SLUICE_AVX2 std::uint32_t unpack_block(const std::uint8_t* packed, CoefficientBlock& block) {
  const std::uint16_t first = load_u16(packed);
  if ((first & 1U) != 0) return unpack_block_simply(packed, block);
  const std::uint32_t filled = packed[2];
  const std::uint8_t* next = packed + kPackedFixedBytes;
  auto bits = static_cast<std::uint64_t>(_mm_cvtsi128_si64(spread(next, filled)));
  next += _mm_popcnt_u32(filled);
  auto* const rows = reinterpret_cast<__m128i*>(block.values);
  for (int i = 0; i < 8; ++i, bits >>= 8) {
    _mm_store_si128(rows + i, _mm_cvtepi8_epi16(spread(next, bits & 0xFFU)));
    next += _mm_popcnt_u32(static_cast<std::uint32_t>(bits & 0xFFU));
  }
  block.values[0] = packed_first(first);
  return static_cast<std::uint32_t>(next - packed);
}

// a * first + b * second, of eight words each, as eight double words.
SLUICE_AVX2 inline __m256i products(__m256i pairs, int first, int second) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(second) << 16U |
                                                                     (static_cast<std::uint32_t>(first) & 0xFFFFU))));
}

SLUICE_AVX2 inline __m256i pairs_of(__m128i a, __m128i b) {
  return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
}

SLUICE_AVX2 inline __m256i scaled(__m128i words) {
  return _mm256_slli_epi32(_mm256_cvtepi16_epi32(words), kFactorBits);
}

// The transform of eight columns at once. The words of a result are in two halves: those of the first four columns of
// two rows are in the lower 128 bits.
template <int kShift>
SLUICE_AVX2 inline Rows transformed(const __m128i* in) {
  const __m256i in26 = pairs_of(in[2], in[6]);
  const __m256i even2 = products(in26, k0_541, k0_541 - k1_847);
  const __m256i even3 = products(in26, k0_541 + k0_765, k0_541);
  const __m256i even0 = scaled(_mm_add_epi16(in[0], in[4]));
  const __m256i even1 = scaled(_mm_sub_epi16(in[0], in[4]));
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const __m256i evens[4] = {
      _mm256_add_epi32(_mm256_add_epi32(even0, even3), half), _mm256_add_epi32(_mm256_add_epi32(even1, even2), half),
      _mm256_add_epi32(_mm256_sub_epi32(even1, even2), half), _mm256_add_epi32(_mm256_sub_epi32(even0, even3), half)};

  const __m256i sums = pairs_of(_mm_add_epi16(in[7], in[3]), _mm_add_epi16(in[5], in[1]));
  const __m256i z3 = products(sums, k1_175 - k1_961, k1_175);
  const __m256i z4 = products(sums, k1_175, k1_175 - k0_390);
  const __m256i in71 = pairs_of(in[7], in[1]);
  const __m256i in53 = pairs_of(in[5], in[3]);
  const __m256i odds[4] = {_mm256_add_epi32(products(in71, -k0_899, k1_501 - k0_899), z4),
                           _mm256_add_epi32(products(in53, -k2_562, k3_072 - k2_562), z3),
                           _mm256_add_epi32(products(in53, k2_053 - k2_562, -k2_562), z4),
                           _mm256_add_epi32(products(in71, k0_298 - k0_899, -k0_899), z3)};
  __m256i out[8];
  for (int i = 0; i < 4; ++i) {
    out[i] = _mm256_srai_epi32(_mm256_add_epi32(evens[i], odds[i]), kShift);
    out[7 - i] = _mm256_srai_epi32(_mm256_sub_epi32(evens[i], odds[i]), kShift);
  }
  return {_mm256_packs_epi32(out[0], out[4]), _mm256_packs_epi32(out[1], out[5]), _mm256_packs_epi32(out[2], out[6]),
          _mm256_packs_epi32(out[3], out[7])};
}

// Columns of what transformed() gives, as rows.
SLUICE_AVX2 inline Rows transposed(const Rows& rows) {
  const __m256i row01 = _mm256_unpacklo_epi16(rows.row04, rows.row15);
  const __m256i row45 = _mm256_unpackhi_epi16(rows.row04, rows.row15);
  const __m256i row23 = _mm256_unpacklo_epi16(rows.row26, rows.row37);
  const __m256i row67 = _mm256_unpackhi_epi16(rows.row26, rows.row37);
  const __m256i first03 = _mm256_unpacklo_epi32(row01, row23);
  const __m256i second03 = _mm256_unpackhi_epi32(row01, row23);
  const __m256i first47 = _mm256_unpacklo_epi32(row45, row67);
  const __m256i second47 = _mm256_unpackhi_epi32(row45, row67);
  return {_mm256_unpacklo_epi64(first03, first47), _mm256_unpackhi_epi64(first03, first47),
          _mm256_unpacklo_epi64(second03, second47), _mm256_unpackhi_epi64(second03, second47)};
}

SLUICE_AVX2 inline void split(const Rows& rows, __m128i* eight) {
  const __m256i pairs[4] = {rows.row04, rows.row15, rows.row26, rows.row37};
  for (int i = 0; i < 4; ++i) {
    eight[i] = _mm256_castsi256_si128(pairs[i]);
    eight[i + 4] = _mm256_extracti128_si256(pairs[i], 1);
  }
}

SLUICE_AVX2 inline void store_two_rows(__m128i rows, std::uint8_t* first, std::uint8_t* second) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(first), rows);
  _mm_storeh_pd(reinterpret_cast<double*>(second), _mm_castsi128_pd(rows));
}

SLUICE_AVX2 void inverse_transform(const CoefficientBlock& block, const std::int16_t* steps, std::uint8_t* target,
                                   std::size_t stride_bytes) {
  const auto* values = reinterpret_cast<const __m128i*>(block.values);
  __m128i beside_first_row = _mm_load_si128(values + 1);
  for (int i = 2; i < 8; ++i) beside_first_row = _mm_or_si128(beside_first_row, _mm_load_si128(values + i));
  __m128i rows[8];
  for (int i = 0; i < 8; ++i) {
    rows[i] = _mm_mullo_epi16(_mm_load_si128(values + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(steps) + i));
  }
  if (_mm_testz_si128(beside_first_row, beside_first_row) != 0) {
    // Every row is the first; transposed, a row has the same word eight times.
    alignas(16) std::int16_t first[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(first), _mm_slli_epi16(rows[0], kExtraBits));
    for (int i = 0; i < 8; ++i) rows[i] = _mm_set1_epi16(first[i]);
  } else {
    split(transposed(transformed<kFirstPassShift>(rows)), rows);
  }
  const Rows result = transposed(transformed<kSecondPassShift>(rows));
  const __m256i zero = _mm256_set1_epi8(static_cast<char>(kColourZero));
  const __m256i rows0145 = _mm256_add_epi8(_mm256_packs_epi16(result.row04, result.row15), zero);
  const __m256i rows2367 = _mm256_add_epi8(_mm256_packs_epi16(result.row26, result.row37), zero);
  std::uint8_t* const lower = target + 4 * stride_bytes;
  store_two_rows(_mm256_castsi256_si128(rows0145), target, target + stride_bytes);
  store_two_rows(_mm256_castsi256_si128(rows2367), target + 2 * stride_bytes, target + 3 * stride_bytes);
  store_two_rows(_mm256_extracti128_si256(rows0145, 1), lower, lower + stride_bytes);
  store_two_rows(_mm256_extracti128_si256(rows2367, 1), lower + 2 * stride_bytes, lower + 3 * stride_bytes);
}

SLUICE_AVX2 inline __m256i sixteen(const std::uint8_t* samples) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(samples)));
}

SLUICE_AVX2 inline __m256i three_times(__m256i words) { return _mm256_add_epi16(words, _mm256_slli_epi16(words, 1)); }

template <int kShift>
SLUICE_AVX2 inline __m256i descaled(__m256i here, __m256i beside, int rounding) {
  return _mm256_srli_epi16(
      _mm256_add_epi16(_mm256_add_epi16(here, beside), _mm256_set1_epi16(static_cast<std::int16_t>(rounding))), kShift);
}

SLUICE_AVX2 inline void store_alternating(__m256i even, __m256i odd, std::uint8_t* target) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

SLUICE_AVX2 void widen(const std::uint8_t* samples, std::uint8_t* target, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16, samples += 16, target += 32) {
    const __m256i here = three_times(sixteen(samples));
    store_alternating(descaled<2>(here, sixteen(samples - 1), 1), descaled<2>(here, sixteen(samples + 1), 2), target);
  }
}

SLUICE_AVX2 inline __m256i between(const std::uint8_t* near, const std::uint8_t* far) {
  return _mm256_add_epi16(three_times(sixteen(near)), sixteen(far));
}

SLUICE_AVX2 void widen_between(const std::uint8_t* near, const std::uint8_t* far, std::uint8_t* target,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16, near += 16, far += 16, target += 32) {
    const __m256i here = three_times(between(near, far));
    store_alternating(descaled<4>(here, between(near - 1, far - 1), 8),
                      descaled<4>(here, between(near + 1, far + 1), 7), target);
  }
}

// (2 * word * factor / 2^16 + 1) / 2, rounded down both times: word * factor / 2^16, rounded to nearest.
SLUICE_AVX2 inline __m256i share(__m256i doubled, int factor) {
  const __m256i high = _mm256_mulhi_epi16(doubled, _mm256_set1_epi16(static_cast<std::int16_t>(factor)));
  return _mm256_srai_epi16(_mm256_add_epi16(high, _mm256_set1_epi16(1)), 1);
}

SLUICE_AVX2 inline __m256i green_share(__m256i pairs) {
  const __m256i half = _mm256_set1_epi32(1 << (kColourBits - 1));
  return _mm256_srai_epi32(_mm256_add_epi32(products(pairs, kGreenFromBlue, kGreenFromRed), half), kColourBits);
}

SLUICE_AVX2 inline __m128i bytes_of(__m256i words) {
  return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

SLUICE_AVX2 inline void store_rgb(__m128i red, __m128i green, __m128i blue, std::uint8_t* pixels) {
  auto* target = reinterpret_cast<__m128i*>(pixels);
  const __m128i red0 = _mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
  const __m128i green0 = _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
  const __m128i blue0 = _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
  const __m128i red1 = _mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
  const __m128i green1 = _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
  const __m128i blue1 = _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
  const __m128i red2 = _mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
  const __m128i green2 = _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
  const __m128i blue2 = _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
  const auto mixed = [&](__m128i r, __m128i g, __m128i b) SLUICE_AVX2 {
    return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(red, r), _mm_shuffle_epi8(green, g)), _mm_shuffle_epi8(blue, b));
  };
  _mm_storeu_si128(target, mixed(red0, green0, blue0));
  _mm_storeu_si128(target + 1, mixed(red1, green1, blue1));
  _mm_storeu_si128(target + 2, mixed(red2, green2, blue2));
}

SLUICE_AVX2 void to_rgb(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red,
                        std::uint8_t* pixels, std::size_t count) {
  const __m256i zero = _mm256_set1_epi16(kColourZero);
  for (std::size_t i = 0; i < count; i += 16, pixels += 48) {
    const __m256i y = sixteen(luma + i);
    const __m256i cb = _mm256_sub_epi16(sixteen(blue + i), zero);
    const __m256i cr = _mm256_sub_epi16(sixteen(red + i), zero);
    const __m256i cb2 = _mm256_add_epi16(cb, cb);
    const __m256i cr2 = _mm256_add_epi16(cr, cr);
    const __m256i from_both =
        _mm256_packs_epi32(green_share(_mm256_unpacklo_epi16(cb, cr)), green_share(_mm256_unpackhi_epi16(cb, cr)));
    const __m256i r = _mm256_add_epi16(_mm256_add_epi16(y, cr), share(cr2, kRedFromRed));
    const __m256i g = _mm256_add_epi16(_mm256_sub_epi16(y, cr), from_both);
    const __m256i b = _mm256_add_epi16(_mm256_add_epi16(y, cb2), share(cb2, kBlueFromBlue));
    store_rgb(bytes_of(r), bytes_of(g), bytes_of(b), pixels);
  }
}

SLUICE_AVX2 void grey_to_rgb(const std::uint8_t* luma, std::uint8_t* pixels, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16, pixels += 48) {
    const __m128i grey = _mm_loadu_si128(reinterpret_cast<const __m128i*>(luma + i));
    store_rgb(grey, grey, grey, pixels);
  }
}

}  // namespace

std::vector<const JpegKernels*> x86_jpeg_kernels() {
  static constexpr JpegKernels kAvx2{"avx2", read_block,    skip_block, pack_block, unpack_block, inverse_transform,
                                     widen,  widen_between, to_rgb,     grey_to_rgb};
  const bool supported =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  return supported ? std::vector<const JpegKernels*>{&kAvx2} : std::vector<const JpegKernels*>{};
}

}  // namespace sluice::pipeline

#else

namespace sluice::pipeline {

std::vector<const JpegKernels*> x86_jpeg_kernels() { return {}; }

}  // namespace sluice::pipeline

#endif
