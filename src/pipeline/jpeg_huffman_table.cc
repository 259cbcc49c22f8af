#include "src/pipeline/jpeg_huffman_table.h"

#include <algorithm>

namespace sluice::pipeline {
namespace {

constexpr std::uint32_t kFirstSymbolMax = 15;
constexpr std::uint32_t kZeroRun = 0xF0;  // sixteen zeros, no value

HuffmanCode packed(std::uint32_t code_bits, std::uint32_t step, std::uint32_t value_bits) {
  return {(code_bits + value_bits) | step << 8U | code_bits << 16U | (63 - value_bits) << 24U};
}

}  // namespace

bool HuffmanTable::define(Kind kind, const HuffmanDefinition& definition) {
  if (defined_ && kind == kind_ && definition == definition_) return true;
  defined_ = false;
  kind_ = kind;
  definition_ = definition;
  codes_.fill(0);
  ends_.fill(0);
  std::uint32_t code = 0;
  std::size_t symbol = 0;
  for (int bits = 1; bits <= HuffmanDefinition::kCodeBitsMax; ++bits, code <<= 1U) {
    const auto length = static_cast<std::size_t>(bits);
    const std::size_t count = definition.counts[length];
    if (symbol + count > definition.symbols.size()) return false;
    // A code of ones only is not allowed.
    if (count > 0 && code + count >= (1U << length)) return false;
    symbol_offsets_[length] = static_cast<int>(symbol) - static_cast<int>(code);
    for (std::size_t i = 0; i < count; ++i, ++code, ++symbol) {
      if (kind == Kind::kFirst && definition.symbols[symbol] > kFirstSymbolMax) return false;
      if (bits > kIndexBits) continue;
      const std::size_t entries = std::size_t{1} << static_cast<std::size_t>(kIndexBits - bits);
      std::fill_n(&codes_[code * entries], entries, meaning(bits, definition.symbols[symbol]).word);
    }
    ends_[length] = code << (HuffmanDefinition::kCodeBitsMax - length);
  }
  defined_ = true;
  return true;
}

HuffmanCode HuffmanTable::meaning(int code_bits, std::uint8_t symbol) const {
  const bool is_first = kind_ == Kind::kFirst;
  const auto length = static_cast<std::uint32_t>(code_bits);
  const std::uint32_t value_bits = is_first ? symbol : symbol & 15U;
  if (value_bits > static_cast<std::uint32_t>(is_first ? kFirstValueBitsMax : kOtherValueBitsMax)) {
    return packed(length, kNoCodeStep, 0);
  }
  if (is_first) return packed(length, 1, value_bits);
  if (value_bits == 0 && symbol != kZeroRun) return packed(length, kEndOfBlockStep, 0);
  return packed(length, (symbol >> 4U) + 1, value_bits);
}

HuffmanCode HuffmanTable::long_code(std::uint64_t bits) const {
  constexpr int kCodeBitsMax = HuffmanDefinition::kCodeBitsMax;
  const auto start = static_cast<std::uint32_t>(bits >> (64U - kCodeBitsMax));
  for (int length = kIndexBits + 1; length <= kCodeBitsMax; ++length) {
    const auto index = static_cast<std::size_t>(length);
    if (start >= ends_[index]) continue;
    const int symbol = symbol_offsets_[index] + static_cast<int>(start >> static_cast<unsigned>(kCodeBitsMax - length));
    return meaning(length, definition_.symbols[static_cast<std::size_t>(symbol)]);
  }
  return packed(0, kNoCodeStep, 0);
}

HuffmanPair HuffmanPair::single(HuffmanCode code) {
  constexpr std::uint64_t kNoValue = 63;
  // The place of no code's value does not matter.
  const std::uint64_t start = code.code_bits() == 0 ? 0 : code.code_bits() - 1;
  return {code.total_bits() | std::uint64_t{code.step()} << 8U | std::uint64_t{code.step()} << 16U | start << 24U |
          std::uint64_t{code.value_shift()} << 32U | kNoValue << 48U};
}

HuffmanPair HuffmanPair::both(HuffmanCode first, HuffmanCode second) {
  constexpr std::uint64_t kTotals = 0xFFFF;
  const std::uint64_t totals = (first.total_bits() + second.total_bits()) | (first.step() + second.step()) << 8U;
  const std::uint64_t second_start = first.total_bits() + second.code_bits() - 1;
  return {(single(first).word & ~(kTotals | std::uint64_t{255} << 48U)) | totals | second_start << 40U |
          std::uint64_t{second.value_shift()} << 48U};
}

bool HuffmanPairTable::define(const HuffmanDefinition& definition) {
  if (defined_ && definition == singles_.definition()) return true;
  defined_ = false;
  if (!singles_.define(HuffmanTable::Kind::kOthers, definition)) return false;
  for (std::size_t i = 0; i < pairs_.size(); ++i) pairs_[i] = pair_at(std::uint64_t{i} << (64U - kIndexBits)).word;
  defined_ = true;
  return true;
}

// Of the bits only the first kIndexBits are known, the others may be anything. What they do not settle is not answered.
HuffmanPair HuffmanPairTable::pair_at(std::uint64_t bits) const {
  const HuffmanCode first = singles_.at(bits);
  if (first.code_bits() == 0 || first.code_bits() > kIndexBits) return {};
  if (first.step() >= HuffmanTable::kEndOfBlockStep || first.total_bits() >= kIndexBits)
    return HuffmanPair::single(first);
  const HuffmanCode second = singles_.at(bits << first.total_bits());
  if (second.step() == HuffmanTable::kNoCodeStep || first.total_bits() + second.code_bits() > kIndexBits) {
    return HuffmanPair::single(first);
  }
  return HuffmanPair::both(first, second);
}

}  // namespace sluice::pipeline
