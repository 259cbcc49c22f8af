#include "src/pipeline/audio/flac_subframe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sluice::pipeline::audio {
namespace {

// Binomial coefficients with alternating signs: the differences of a polynomial of that degree vanish.
constexpr std::array<std::array<std::int32_t, 4>, 5> kFixedWeights{{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}};

// Of four codes that one fetch of bits usually holds.
constexpr unsigned kShortParameterMax = 10;

// False where a code has more than 32 bits.
template <std::size_t kAtOnce>
SLUICE_INLINE bool read_codes(BitReader& reader, unsigned parameter, std::span<std::int32_t> codes) {
  const bool is_quick = parameter <= BitReader::kQuickParameterMax;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    BitReader fast = reader;  // In registers, as no other code has its address.
    while (is_quick && i + kAtOnce <= codes.size() && fast.read_rice_codes<kAtOnce>(parameter, codes.data() + i)) {
      i += kAtOnce;
    }
    reader = fast;
    if (i == codes.size()) break;
    const std::uint64_t code = reader.read_rice(parameter);
    if (code >> 32 != 0) return false;
    codes[i] = static_cast<std::int32_t>(code);
  }
  return true;
}

SLUICE_INLINE bool read_partition(BitReader& reader, unsigned parameter, std::span<std::int32_t> codes) {
  return parameter <= kShortParameterMax ? read_codes<4>(reader, parameter, codes)
                                         : read_codes<2>(reader, parameter, codes);
}

using ReadCodes = bool (*)(BitReader&, unsigned, std::span<std::int32_t>);

// The loop is compiled twice: for every processor, and for those that shift and count zeros in one step each.
bool read_anywhere(BitReader& reader, unsigned parameter, std::span<std::int32_t> codes) {
  return read_partition(reader, parameter, codes);
}

#if defined(__x86_64__)
__attribute__((target("bmi,bmi2,lzcnt"))) bool read_by_bits(BitReader& reader, unsigned parameter,
                                                            std::span<std::int32_t> codes) {
  return read_partition(reader, parameter, codes);
}

bool has_bit_instructions() {
  constexpr unsigned kExtendedFeatures = 0x80000001;
  constexpr unsigned kCountsLeadingZeros = 1U << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool counts = __get_cpuid(kExtendedFeatures, &a, &b, &c, &d) != 0 && (c & kCountsLeadingZeros) != 0;
  return counts && __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}
#endif

ReadCodes best_reader() {
#if defined(__x86_64__)
  if (has_bit_instructions()) return read_by_bits;
#endif
  return read_anywhere;
}

// An escaped partition: residuals of so many bits each.
void read_raw(BitReader& reader, unsigned bits, std::span<std::int32_t> codes) {
  for (std::int32_t& code : codes) {
    code = static_cast<std::int32_t>(flac_code_of(bits == 0 ? 0 : reader.read_signed(bits)));
  }
}

// Behind the first predictor.order samples.
bool read_residual(BitReader& reader, const FlacPredictor& predictor, std::span<std::int32_t> samples) {
  static const ReadCodes kRead = best_reader();
  const unsigned method = reader.read(2);
  if (method > 1) return false;
  const unsigned parameter_bits = method == 0 ? 4 : 5;
  const unsigned escape = (1U << parameter_bits) - 1;
  const unsigned partitions = 1U << reader.read(4);
  const std::size_t length = samples.size() / partitions;
  if (length * partitions != samples.size() || length < predictor.order) return false;
  std::size_t at = predictor.order;
  for (std::size_t end = length; end <= samples.size(); end += length) {
    const unsigned parameter = reader.read(parameter_bits);
    if (parameter == escape) {
      read_raw(reader, reader.read(5), samples.subspan(at, end - at));
    } else if (!kRead(reader, parameter, samples.subspan(at, end - at))) {
      return false;
    }
    if (reader.overran()) return false;
    at = end;
  }
  return true;
}

bool read_weights(BitReader& reader, FlacPredictor& predictor) {
  const unsigned precision = reader.read(4) + 1;
  const std::int32_t shift = reader.read_signed(5);
  if (precision > 15 || shift < 0) return false;
  predictor.shift = static_cast<unsigned>(shift);
  for (unsigned i = 0; i < predictor.order; ++i) predictor.weights[i] = reader.read_signed(precision);
  return true;
}

bool read_predicted(BitReader& reader, unsigned kind, unsigned bits, FlacPredictor& predictor,
                    std::span<std::int32_t> samples) {
  const bool is_fixed = kind < 32;
  predictor.order = is_fixed ? kind - 8 : kind - 31;
  if (predictor.order > samples.size()) return false;
  for (std::int32_t& sample : samples.first(predictor.order)) sample = reader.read_signed(bits);
  if (is_fixed) {
    std::ranges::copy(kFixedWeights[predictor.order], predictor.weights.begin());
  } else if (!read_weights(reader, predictor)) {
    return false;
  }
  return read_residual(reader, predictor, samples);
}

}  // namespace

bool read_flac_subframe(BitReader& reader, unsigned bits, FlacRow& row, std::int32_t* samples) {
  if (reader.read(1) != 0) return false;
  const unsigned kind = reader.read(6);
  row.predictor = {};
  row.wasted = 0;
  if (reader.read(1) != 0) {
    const std::uint64_t zeros = reader.read_unary();
    if (zeros + 1 >= bits) return false;
    row.wasted = static_cast<unsigned>(zeros) + 1;
  }
  row.bits = bits - row.wasted;
  const std::span written(samples, row.length);
  if (kind == 0) {
    std::ranges::fill(written, static_cast<std::int32_t>(flac_code_of(reader.read_signed(row.bits))));
  } else if (kind == 1) {
    read_raw(reader, row.bits, written);
  } else if ((kind >= 8 && kind <= 12) || kind >= 32) {
    return read_predicted(reader, kind, row.bits, row.predictor, written);
  } else {
    return false;
  }
  return true;
}

}  // namespace sluice::pipeline::audio
