#include "src/pipeline/audio/flac_subframe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sluice::pipeline::audio {
namespace {

constexpr unsigned kOrderMax = 32;
constexpr unsigned kUnrolledOrderMax = 12;  // Encoders of music and speech use no more by default.

// sample = residual + (the weighted sum of samples before it >> shift); the weight of the latest sample is the first.
struct Predictor {
  unsigned order = 0;
  unsigned shift = 0;
  std::array<std::int64_t, kOrderMax> weights{};
};

// Binomial coefficients with alternating signs: the differences of a polynomial of that degree vanish.
constexpr std::array<std::array<std::int64_t, 4>, 5> kFixedWeights{{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}}};

// kOrder 0: the predictor's.
template <unsigned kOrder>
[[gnu::always_inline]] inline std::int32_t predicted(const Predictor& predictor, const std::int32_t* next) {
  const unsigned order = kOrder == 0 ? predictor.order : kOrder;
  std::int64_t sum = 0;
  // The latest sample comes last: everything else can be summed before it is known.
#pragma GCC unroll 12
  for (unsigned i = order; i > 0; --i) sum += predictor.weights[i - 1] * next[-static_cast<int>(i)];
  return static_cast<std::int32_t>(sum >> predictor.shift);
}

// The sample of a residual's code: even numbers stand for positive ones.
[[gnu::always_inline]] inline std::int32_t sample_of(std::uint64_t code, std::int32_t prediction) {
  const auto residual = static_cast<std::uint32_t>(code >> 1) ^ -static_cast<std::uint32_t>(code & 1);
  return static_cast<std::int32_t>(residual + static_cast<std::uint32_t>(prediction));
}

// Residuals are read and predictions added in one loop: while one waits for its bits, the other computes.
// Returns all bits that any code has above 32.
template <unsigned kOrder>
[[gnu::always_inline]] inline std::uint64_t read_partition(BitReader& reader, unsigned parameter,
                                                           const Predictor& predictor, std::int32_t* samples,
                                                           std::size_t count) {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    BitReader fast = reader;  // In registers, as no other code has its address.
    std::uint64_t first = 0, second = 0;
    for (; i + 2 <= count && fast.read_two_rice(parameter, first, second); i += 2) {
      seen |= first | second;
      samples[i] = sample_of(first, predicted<kOrder>(predictor, samples + i));
      samples[i + 1] = sample_of(second, predicted<kOrder>(predictor, samples + i + 1));
    }
    reader = fast;
    if (i == count) break;
    const std::uint64_t code = reader.read_rice(parameter);
    seen |= code;
    samples[i] = sample_of(code, predicted<kOrder>(predictor, samples + i));
  }
  return seen >> 32;
}

using ReadPartition = std::uint64_t (*)(BitReader&, unsigned, const Predictor&, std::int32_t*, std::size_t);

using Readers = std::array<ReadPartition, kUnrolledOrderMax + 1>;

// The loop is compiled twice: for every processor, and for those that shift and count zeros in one step each.
template <unsigned kOrder>
std::uint64_t read_anywhere(BitReader& reader, unsigned parameter, const Predictor& predictor, std::int32_t* samples,
                            std::size_t count) {
  return read_partition<kOrder>(reader, parameter, predictor, samples, count);
}

template <std::size_t... kOrders>
Readers readers_anywhere(std::index_sequence<kOrders...> /*orders*/) {
  return {read_anywhere<kOrders>...};
}

#if defined(__x86_64__)
template <unsigned kOrder>
__attribute__((target("bmi,bmi2,lzcnt"))) std::uint64_t read_by_bits(BitReader& reader, unsigned parameter,
                                                                     const Predictor& predictor, std::int32_t* samples,
                                                                     std::size_t count) {
  return read_partition<kOrder>(reader, parameter, predictor, samples, count);
}

template <std::size_t... kOrders>
Readers readers_by_bits(std::index_sequence<kOrders...> /*orders*/) {
  return {read_by_bits<kOrders>...};
}

bool has_bit_instructions() {
  constexpr unsigned kExtendedFeatures = 0x80000001;
  constexpr unsigned kCountsLeadingZeros = 1U << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool counts = __get_cpuid(kExtendedFeatures, &a, &b, &c, &d) != 0 && (c & kCountsLeadingZeros) != 0;
  return counts && __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}
#endif

Readers best_readers() {
  constexpr std::make_index_sequence<kUnrolledOrderMax + 1> kOrders;
#if defined(__x86_64__)
  if (has_bit_instructions()) return readers_by_bits(kOrders);
#endif
  return readers_anywhere(kOrders);
}

// An escaped partition: residuals of so many bits each.
void read_raw(BitReader& reader, unsigned bits, const Predictor& predictor, std::span<std::int32_t> samples) {
  for (std::int32_t& sample : samples) {
    const auto residual = static_cast<std::uint32_t>(bits == 0 ? 0 : reader.read_signed(bits));
    sample = static_cast<std::int32_t>(residual + static_cast<std::uint32_t>(predicted<0>(predictor, &sample)));
  }
}

// The samples behind the first predictor.order ones.
bool read_residual(BitReader& reader, const Predictor& predictor, std::span<std::int32_t> samples) {
  static const Readers kReaders = best_readers();
  const unsigned method = reader.read(2);
  if (method > 1) return false;
  const unsigned parameter_bits = method == 0 ? 4 : 5;
  const unsigned escape = (1U << parameter_bits) - 1;
  const unsigned partitions = 1U << reader.read(4);
  const std::size_t length = samples.size() / partitions;
  if (length * partitions != samples.size() || length < predictor.order) return false;
  const ReadPartition read = kReaders[predictor.order <= kUnrolledOrderMax ? predictor.order : 0];
  std::size_t at = predictor.order;
  for (std::size_t end = length; end <= samples.size(); end += length) {
    const unsigned parameter = reader.read(parameter_bits);
    if (parameter == escape) {
      read_raw(reader, reader.read(5), predictor, samples.subspan(at, end - at));
    } else if (read(reader, parameter, predictor, samples.data() + at, end - at) != 0) {
      return false;
    }
    if (reader.overran()) return false;
    at = end;
  }
  return true;
}

bool read_weights(BitReader& reader, Predictor& predictor) {
  const unsigned precision = reader.read(4) + 1;
  const std::int32_t shift = reader.read_signed(5);
  if (precision > 15 || shift < 0) return false;
  predictor.shift = static_cast<unsigned>(shift);
  for (unsigned i = 0; i < predictor.order; ++i) predictor.weights[i] = reader.read_signed(precision);
  return true;
}

bool read_predicted(BitReader& reader, unsigned kind, unsigned bits, std::span<std::int32_t> samples) {
  Predictor predictor;
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

bool read_flac_subframe(BitReader& reader, unsigned bits, std::span<std::int32_t> samples) {
  if (reader.read(1) != 0) return false;
  const unsigned kind = reader.read(6);
  unsigned wasted = 0;
  if (reader.read(1) != 0) {
    const std::uint64_t zeros = reader.read_unary();
    if (zeros + 1 >= bits) return false;
    wasted = static_cast<unsigned>(zeros) + 1;
    bits -= wasted;
  }
  if (kind == 0) {
    std::ranges::fill(samples, reader.read_signed(bits));
  } else if (kind == 1) {
    for (std::int32_t& sample : samples) sample = reader.read_signed(bits);
  } else if ((kind >= 8 && kind <= 12) || kind >= 32) {
    if (!read_predicted(reader, kind, bits, samples)) return false;
  } else {
    return false;
  }
  std::uint32_t magnitudes = 0;
  for (std::int32_t& sample : samples) {
    magnitudes |= static_cast<std::uint32_t>(sample ^ (sample >> 31));
    sample = static_cast<std::int32_t>(static_cast<std::uint32_t>(sample) << wasted);
  }
  return magnitudes >> (bits - 1) == 0;
}

}  // namespace sluice::pipeline::audio
