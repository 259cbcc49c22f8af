// Look-up tables of a baseline JPEG's Huffman codes: one look-up gives a code's length, what it says, and how many bits
// of value follow it; for coefficients, of two codes where both are short.
//
// Thread safety: as int.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::pipeline {

// Coefficients of a block.
inline constexpr std::uint32_t kBlockEnd = 64;

// As a JPEG file defines codes: counts[n] of them have n bits (counts[0] is ignored); symbols in order of the codes.
struct HuffmanDefinition {
  static constexpr int kCodeBitsMax = 16;

  std::array<std::uint8_t, kCodeBitsMax + 1> counts{};
  std::array<std::uint8_t, 256> symbols{};
  bool operator==(const HuffmanDefinition&) const = default;
};

// What a code says, in one word.
struct HuffmanCode {
  // Bits 0-7: length of the code and its value together, in bits. 8-15: coefficients to go on by. 16-23: length of the
  // code. 24-31: 63 less the length of the value.
  std::uint32_t word = 0;

  std::uint32_t total_bits() const { return word & 63; }
  std::uint32_t step() const { return word >> 8 & 255; }
  std::uint32_t code_bits() const { return word >> 16 & 63; }
  std::uint32_t value_shift() const { return word >> 24 & 63; }
};

class HuffmanTable {
 public:
  // Of a block's first coefficient (a difference to the block before), or of the 63 others, each with the zeros before.
  enum class Kind { kFirst, kOthers };

  // No value of a valid file has more.
  static constexpr int kFirstValueBitsMax = 11;
  static constexpr int kOtherValueBitsMax = 10;

  // Steps that lead behind the block's end, so that the reader's only test is for that.
  static constexpr std::uint32_t kEndOfBlockStep = 128;
  static constexpr std::uint32_t kNoCodeStep = 192;

  // At once if the definition is the last one. False if it is not one of codes.
  bool define(Kind kind, const HuffmanDefinition& definition);
  const HuffmanDefinition& definition() const { return definition_; }

  // The code at the top of `bits`. What is no code, or has a value longer than a valid file's, has the step
  // kNoCodeStep.
  HuffmanCode at(std::uint64_t bits) const {
    const HuffmanCode code{codes_[bits >> (64 - kIndexBits)]};
    return code.word != 0 ? code : long_code(bits);
  }

 private:
  static constexpr int kIndexBits = 9;

  HuffmanCode meaning(int code_bits, std::uint8_t symbol) const;
  HuffmanCode long_code(std::uint64_t bits) const;

  Kind kind_ = Kind::kFirst;
  bool defined_ = false;
  HuffmanDefinition definition_;
  std::array<std::uint32_t, std::size_t{1} << kIndexBits> codes_{};  // 0: a longer code
  // Of the codes of each length: the first 16 bits behind the last code, and the first symbol less the first code.
  std::array<std::uint32_t, HuffmanDefinition::kCodeBitsMax + 1> ends_{};
  std::array<int, HuffmanDefinition::kCodeBitsMax + 1> symbol_offsets_{};
};

// What one code says, or two that follow each other, in one word. Without a second code its step is 0 and its value
// too.
struct HuffmanPair {
  // Bits 0-7: length of the codes and values together, in bits. 8-15: coefficients to go on by in all. 16-23: by the
  // first code. 24-31: place of the bit before the first value. 32-39: 63 less the length of that value. 40-47, 48-55:
  // the same of the second value.
  std::uint64_t word = 0;

  static HuffmanPair single(HuffmanCode code);
  static HuffmanPair both(HuffmanCode first, HuffmanCode second);

  std::uint32_t total_bits() const { return word & 63; }
  std::uint32_t step() const { return word >> 8 & 255; }
  std::uint32_t first_step() const { return word >> 16 & 255; }
  std::uint32_t first_start() const { return word >> 24 & 63; }
  std::uint32_t first_value_shift() const { return word >> 32 & 63; }
  std::uint32_t second_start() const { return word >> 40 & 63; }
  std::uint32_t second_value_shift() const { return word >> 48 & 63; }
  std::uint32_t first_bits() const { return first_start() + 1 + 63 - first_value_shift(); }
};

// Table of the codes of Kind::kOthers, in pairs.
class HuffmanPairTable {
 public:
  // As HuffmanTable's.
  bool define(const HuffmanDefinition& definition);

  HuffmanPair at(std::uint64_t bits) const {
    const HuffmanPair pair{pairs_[bits >> (64 - kIndexBits)]};
    return pair.word != 0 ? pair : HuffmanPair::single(singles_.at(bits));
  }

 private:
  static constexpr int kIndexBits = 11;

  HuffmanPair pair_at(std::uint64_t bits) const;

  bool defined_ = false;
  HuffmanTable singles_;
  std::array<std::uint64_t, std::size_t{1} << kIndexBits> pairs_{};  // 0: a longer code
};

}  // namespace sluice::pipeline
