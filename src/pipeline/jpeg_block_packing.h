// One block of jpeg_coefficients.h. Inlined into each version of the kernels.
//
//   u16: twice the first coefficient, plus 1 if the block is wide; u8: which of the eight rows have other coefficients
//   u8 for each of those rows: which of its coefficients are not zero
//   the coefficients, row by row: i8, in a wide block i16
// The lowest bit stands for the first row, or the first coefficient of a row.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/pipeline/jpeg_kernels.h"

namespace sluice::pipeline {

// Little-endian, whatever the machine is.
[[gnu::always_inline]] inline std::uint16_t load_u16(const std::uint8_t* from) {
  return static_cast<std::uint16_t>(from[0] | from[1] << 8);
}
[[gnu::always_inline]] inline void store_u16(std::uint8_t* to, std::uint16_t value) {
  to[0] = static_cast<std::uint8_t>(value);
  to[1] = static_cast<std::uint8_t>(value >> 8);
}

inline constexpr std::int16_t kPackedFirstMax = (1 << 14) - 1;

[[gnu::always_inline]] inline bool can_pack_first(std::int16_t first) {
  return first >= -kPackedFirstMax && first <= kPackedFirstMax;
}

[[gnu::always_inline]] inline void store_packed_first(std::uint8_t* packed, std::int16_t first, bool wide) {
  store_u16(packed, static_cast<std::uint16_t>(first * 2 + (wide ? 1 : 0)));
}

[[gnu::always_inline]] inline std::int16_t packed_first(std::uint16_t word) {
  return static_cast<std::int16_t>(static_cast<std::int16_t>(word) >> 1);
}

// One coefficient after the other.
inline std::uint32_t pack_block_simply(const CoefficientBlock& block, std::uint8_t* packed) {
  if (!can_pack_first(block.values[0])) return 0;
  std::uint8_t row_bits[8] = {};
  bool wide = false;
  for (std::size_t i = 1; i < kBlockEnd; ++i) {
    const std::int16_t value = block.values[i];
    if (value == 0) continue;
    row_bits[i / 8] = static_cast<std::uint8_t>(row_bits[i / 8] | 1U << i % 8);
    wide = wide || value != static_cast<std::int8_t>(value);
  }
  store_packed_first(packed, block.values[0], wide);
  packed[2] = 0;
  std::uint8_t* next = packed + kPackedFixedBytes;
  for (std::size_t row = 0; row < 8; ++row) {
    if (row_bits[row] == 0) continue;
    packed[2] = static_cast<std::uint8_t>(packed[2] | 1U << row);
    *next++ = row_bits[row];
  }
  for (std::size_t i = 1; i < kBlockEnd; ++i) {
    if (block.values[i] == 0) continue;
    if (wide) {
      store_u16(next, static_cast<std::uint16_t>(block.values[i]));
      next += 2;
    } else {
      *next++ = static_cast<std::uint8_t>(block.values[i]);
    }
  }
  return static_cast<std::uint32_t>(next - packed);
}

inline std::uint32_t unpack_block_simply(const std::uint8_t* packed, CoefficientBlock& block) {
  std::memset(&block, 0, sizeof block);
  const std::uint16_t first = load_u16(packed);
  const bool wide = (first & 1U) != 0;
  const std::uint8_t* bits = packed + kPackedFixedBytes;
  const std::uint8_t* next = bits + std::popcount(packed[2]);
  for (std::uint32_t rows = packed[2]; rows != 0; rows &= rows - 1, ++bits) {
    std::int16_t* row = block.values + 8 * std::countr_zero(rows);
    for (std::uint32_t columns = *bits; columns != 0; columns &= columns - 1) {
      row[std::countr_zero(columns)] =
          wide ? static_cast<std::int16_t>(load_u16(next)) : static_cast<std::int8_t>(*next);
      next += wide ? 2 : 1;
    }
  }
  block.values[0] = packed_first(first);
  return static_cast<std::uint32_t>(next - packed);
}

}  // namespace sluice::pipeline
