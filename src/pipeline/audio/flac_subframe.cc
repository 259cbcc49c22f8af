#include "src/pipeline/audio/flac_subframe.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
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

// Of the next sample: samples are taken one after the other. kOrder 0: the predictor's.
template <unsigned kOrder>
class WidePrediction {
 public:
  WidePrediction(const Predictor& predictor, const std::int32_t* next) : predictor_(predictor), next_(next) {}

  [[gnu::always_inline]] std::int32_t value() const {
    const unsigned order = kOrder == 0 ? predictor_.order : kOrder;
    std::int64_t sum = 0;
    // The latest sample comes last: everything else can be summed before it is known.
#pragma GCC unroll 12
    for (unsigned i = order; i > 0; --i) sum += predictor_.weights[i - 1] * next_[-static_cast<int>(i)];
    return static_cast<std::int32_t>(sum >> predictor_.shift);
  }

  [[gnu::always_inline]] void take(std::int32_t /*sample*/) { ++next_; }

 private:
  const Predictor& predictor_;
  const std::int32_t* next_;
};

#if defined(__x86_64__)
// The same where no sum needs more than 32 bits, nor a sample more than 16. Eight samples are multiplied at once. The
// way through the vector is long, so the latest two samples, which are not known long before, go beside it.
class NarrowPrediction {
 public:
  static constexpr unsigned kOrderMax = 10;

  static bool suits(const Predictor& predictor, unsigned bits) {
    std::int64_t most = 0;
    for (unsigned i = 0; i < predictor.order; ++i) most += std::abs(predictor.weights[i]);
    return bits <= 16 && predictor.order <= kOrderMax && most << (bits - 1) <= std::int64_t{0x7fffffff};
  }

  NarrowPrediction(const Predictor& predictor, const std::int32_t* next)
      : shift_(predictor.shift),
        latest_weight_(static_cast<std::uint32_t>(predictor.weights[0])),
        former_weight_(static_cast<std::uint32_t>(predictor.weights[1])),
        latest_(predictor.order > 0 ? static_cast<std::uint32_t>(next[-1]) : 0),
        former_(predictor.order > 1 ? static_cast<std::uint32_t>(next[-2]) : 0) {
    alignas(16) std::array<std::int16_t, 8> earlier{}, weights{};
    for (unsigned i = 2; i < predictor.order; ++i) {
      earlier[i - 2] = static_cast<std::int16_t>(next[-1 - static_cast<int>(i)]);
      weights[i - 2] = static_cast<std::int16_t>(predictor.weights[i]);
    }
    earlier_ = _mm_load_si128(reinterpret_cast<const __m128i*>(earlier.data()));
    weights_ = _mm_load_si128(reinterpret_cast<const __m128i*>(weights.data()));
  }

  [[gnu::always_inline]] std::int32_t value() const {
    __m128i sums = _mm_madd_epi16(earlier_, weights_);
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
    sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xb1));
    const auto sum = static_cast<std::uint32_t>(_mm_cvtsi128_si32(sums)) + former_weight_ * former_;
    return static_cast<std::int32_t>(sum + latest_weight_ * latest_) >> shift_;
  }

  // What is wider than it may be spoils the samples behind it. It is refused anyway.
  [[gnu::always_inline]] void take(std::int32_t sample) {
    earlier_ = _mm_insert_epi16(_mm_slli_si128(earlier_, 2), static_cast<int>(former_), 0);
    former_ = latest_;
    latest_ = static_cast<std::uint32_t>(sample);
  }

 private:
  unsigned shift_;
  std::uint32_t latest_weight_, former_weight_, latest_, former_;
  __m128i earlier_, weights_;  // the third-latest first
};
#endif

// The sample of a residual's code: even numbers stand for positive ones.
[[gnu::always_inline]] inline std::int32_t sample_of(std::uint64_t code, std::int32_t prediction) {
  const auto residual = static_cast<std::uint32_t>(code >> 1) ^ -static_cast<std::uint32_t>(code & 1);
  return static_cast<std::int32_t>(residual + static_cast<std::uint32_t>(prediction));
}

// Residuals are read and predictions added in one loop: while one waits for its bits, the other computes.
// Returns all bits that any code has above 32.
template <typename Prediction>
[[gnu::always_inline]] inline std::uint64_t read_partition(BitReader& reader, unsigned parameter,
                                                           const Predictor& predictor, std::int32_t* samples,
                                                           std::size_t count) {
  Prediction prediction(predictor, samples);
  const auto put = [&](std::uint64_t code, std::size_t at) __attribute__((always_inline)) {
    samples[at] = sample_of(code, prediction.value());
    prediction.take(samples[at]);
  };
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    BitReader fast = reader;  // In registers, as no other code has its address.
    std::uint64_t first = 0, second = 0;
    for (; i + 2 <= count && fast.read_two_rice(parameter, first, second); i += 2) {
      seen |= first | second;
      put(first, i);
      put(second, i + 1);
    }
    reader = fast;
    if (i == count) break;
    const std::uint64_t code = reader.read_rice(parameter);
    seen |= code;
    put(code, i);
  }
  return seen >> 32;
}

using ReadPartition = std::uint64_t (*)(BitReader&, unsigned, const Predictor&, std::int32_t*, std::size_t);

struct Readers {
  std::array<ReadPartition, kUnrolledOrderMax + 1> wide;
  ReadPartition narrow;  // none on some processors
};

// The loop is compiled twice: for every processor, and for those that shift and count zeros in one step each.
template <typename Prediction>
std::uint64_t read_anywhere(BitReader& reader, unsigned parameter, const Predictor& predictor, std::int32_t* samples,
                            std::size_t count) {
  return read_partition<Prediction>(reader, parameter, predictor, samples, count);
}

#if defined(__x86_64__)
template <typename Prediction>
__attribute__((target("bmi,bmi2,lzcnt"))) std::uint64_t read_by_bits(BitReader& reader, unsigned parameter,
                                                                     const Predictor& predictor, std::int32_t* samples,
                                                                     std::size_t count) {
  return read_partition<Prediction>(reader, parameter, predictor, samples, count);
}

bool has_bit_instructions() {
  constexpr unsigned kExtendedFeatures = 0x80000001;
  constexpr unsigned kCountsLeadingZeros = 1U << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool counts = __get_cpuid(kExtendedFeatures, &a, &b, &c, &d) != 0 && (c & kCountsLeadingZeros) != 0;
  return counts && __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0;
}
#endif

template <std::size_t... kOrders>
Readers best_readers(std::index_sequence<kOrders...> /*orders*/) {
#if defined(__x86_64__)
  if (has_bit_instructions()) return {{read_by_bits<WidePrediction<kOrders>>...}, read_by_bits<NarrowPrediction>};
  return {{read_anywhere<WidePrediction<kOrders>>...}, read_anywhere<NarrowPrediction>};
#else
  return {{read_anywhere<WidePrediction<kOrders>>...}, nullptr};
#endif
}

ReadPartition reader_of(const Predictor& predictor, [[maybe_unused]] unsigned bits) {
  static const Readers kReaders = best_readers(std::make_index_sequence<kUnrolledOrderMax + 1>());
#if defined(__x86_64__)
  if (NarrowPrediction::suits(predictor, bits)) return kReaders.narrow;
#endif
  return kReaders.wide[predictor.order <= kUnrolledOrderMax ? predictor.order : 0];
}

// An escaped partition: residuals of so many bits each.
void read_raw(BitReader& reader, unsigned bits, const Predictor& predictor, std::span<std::int32_t> samples) {
  for (std::int32_t& sample : samples) {
    const auto residual = static_cast<std::uint32_t>(bits == 0 ? 0 : reader.read_signed(bits));
    const std::int32_t prediction = WidePrediction<0>(predictor, &sample).value();
    sample = static_cast<std::int32_t>(residual + static_cast<std::uint32_t>(prediction));
  }
}

// The samples behind the first predictor.order ones.
bool read_residual(BitReader& reader, const Predictor& predictor, unsigned bits, std::span<std::int32_t> samples) {
  const unsigned method = reader.read(2);
  if (method > 1) return false;
  const unsigned parameter_bits = method == 0 ? 4 : 5;
  const unsigned escape = (1U << parameter_bits) - 1;
  const unsigned partitions = 1U << reader.read(4);
  const std::size_t length = samples.size() / partitions;
  if (length * partitions != samples.size() || length < predictor.order) return false;
  const ReadPartition read = reader_of(predictor, bits);
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
  return read_residual(reader, predictor, bits, samples);
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
