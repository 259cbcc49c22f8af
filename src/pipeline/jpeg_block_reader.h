// Reading of one block's Huffman codes. Inlined into each version of the kernels, to be compiled for its processor.
#pragma once

#include <array>
#include <bit>
#include <cstring>

#include "src/pipeline/jpeg_kernels.h"

namespace sluice::pipeline {

// Where a coefficient lies in its block, of the index behind it. Indices outside of the block have a place of their
// own.
inline constexpr std::array<std::uint8_t, 256> kPlaceBefore = [] {
  std::array<std::uint8_t, 256> places{};
  places.fill(kBlockEnd);
  int row = 0;
  int column = 0;
  for (std::size_t index = 0; index < kBlockEnd; ++index) {
    places[index + 1] = static_cast<std::uint8_t>(row * 8 + column);
    const bool upwards = (row + column) % 2 == 0;
    int& back = upwards ? row : column;
    int& ahead = upwards ? column : row;
    if (ahead == 7) {
      ++back;
    } else {
      ++ahead;
      if (back > 0) --back;
    }
  }
  return places;
}();

// Takes the bits of whole bytes, so that there are at least 56: enough for two look-ups with their values.
[[gnu::always_inline]] inline void refill(BitReader& reader) {
  static_assert(
      2 * HuffmanDefinition::kCodeBitsMax + HuffmanTable::kFirstValueBitsMax + HuffmanTable::kOtherValueBitsMax <= 56);
  std::uint64_t word = 0;
  std::memcpy(&word, reader.next, sizeof word);
  if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  reader.bits |= word >> reader.count;
  reader.next += (63 - reader.count) >> 3U;
  reader.count |= 56U;
}

[[gnu::always_inline]] inline void consume(BitReader& reader, std::uint32_t count) {
  reader.bits <<= count;
  reader.count -= count;
}

// The value at the top of `bits`, of 63 - `shift` bits. Of n bits, those that begin with 0 count from -2^n + 1 upwards.
[[gnu::always_inline]] inline std::int32_t value_of(std::uint64_t bits, std::uint32_t shift) {
  const auto negative = ~static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> 63U);
  const std::uint64_t magnitude = ((bits ^ negative) >> 1U) >> shift;
  return static_cast<std::int32_t>((magnitude ^ negative) - negative);
}

// The same of a value with a one put before its bits.
inline constexpr std::array<std::int16_t, std::size_t{2} << HuffmanTable::kOtherValueBitsMax> kValueBehindOne = [] {
  std::array<std::int16_t, std::size_t{2} << HuffmanTable::kOtherValueBitsMax> values{};
  for (int bits = 1; bits <= HuffmanTable::kOtherValueBitsMax; ++bits) {
    const int end = 1 << bits;
    for (int i = 0; i < end; ++i) {
      values[static_cast<std::size_t>(end + i)] = static_cast<std::int16_t>(2 * i < end ? i - end + 1 : i);
    }
  }
  return values;
}();

// The value that begins behind bit `start` of `bits`, of 63 - `shift` bits.
[[gnu::always_inline]] inline std::int16_t value_behind(std::uint64_t bits, std::uint32_t start, std::uint32_t shift) {
  constexpr std::uint64_t kOne = std::uint64_t{1} << 63U;
  return kValueBehindOne[(bits << start | kOne) >> shift];
}

[[gnu::always_inline]] inline bool read_first(BitReader& reader, BlockCoding& coding) {
  if (reader.next > reader.end + sizeof reader.bits) return false;  // keeps the reader inside of the padding
  refill(reader);
  const HuffmanCode code = coding.first->at(reader.bits);
  coding.last_first += static_cast<std::uint32_t>(value_of(reader.bits << code.code_bits(), code.value_shift()));
  consume(reader, code.total_bits());
  return code.step() == 1;
}

// Reads the others of a block, into `values`, which are zero, if it is not null. Returns as JpegKernels::read_block
// does.
[[gnu::always_inline]] inline std::uint32_t read_others(BitReader& reader, const HuffmanPairTable& table,
                                                        std::int16_t* values) {
  std::uint32_t index = 1;
  std::uint32_t first_index = 0;
  std::uint64_t bits = 0;
  HuffmanPair pair;
  const auto read_pair = [&]() __attribute__((always_inline)) {
    bits = reader.bits;
    pair = table.at(bits);
    first_index = index + pair.first_step();
    index += pair.step();
    if (values != nullptr) {
      // In this order: without a second code both have the same place.
      values[kPlaceBefore[index]] = value_behind(bits, pair.second_start(), pair.second_value_shift());
      values[kPlaceBefore[first_index]] = value_behind(bits, pair.first_start(), pair.first_value_shift());
    }
    consume(reader, pair.total_bits());
    return index < kBlockEnd;
  };
  while (read_pair()) {
    refill(reader);
    if (!read_pair()) break;
  }
  const std::uint32_t end = index - HuffmanTable::kEndOfBlockStep;  // wraps without that code
  if (end < kBlockEnd) return end;
  if (first_index == kBlockEnd) {
    // What was taken for a second code belongs to the next block. Its value was stored outside of this one.
    reader.bits = bits << pair.first_bits();
    reader.count += pair.total_bits() - pair.first_bits();
    return kBlockEnd;
  }
  return index == kBlockEnd ? kBlockEnd : 0;
}

[[gnu::always_inline]] inline std::uint32_t read_block_inline(BitReader& caller_reader, BlockCoding& coding,
                                                              CoefficientBlock& block) {
  BitReader reader = caller_reader;  // in registers
  if (!read_first(reader, coding)) return 0;
  const std::uint32_t end = read_others(reader, *coding.others, block.values);
  block.values[0] = static_cast<std::int16_t>(coding.last_first);
  caller_reader = reader;
  return end;
}

[[gnu::always_inline]] inline bool skip_block_inline(BitReader& caller_reader, BlockCoding& coding) {
  BitReader reader = caller_reader;
  if (!read_first(reader, coding)) return false;
  const std::uint32_t end = read_others(reader, *coding.others, nullptr);
  caller_reader = reader;
  return end != 0;
}

}  // namespace sluice::pipeline
