#include "src/pipeline/audio/flac_prediction.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sluice::pipeline::audio {
namespace {

// Encoders of music and speech use no higher orders by default, and most of them no higher than the usual one.
constexpr unsigned kUsualOrder = 8;
constexpr unsigned kUnrolledOrderMax = 12;

using Words = std::uint32_t __attribute__((vector_size(kLanesBytes), aligned(kLanesBytes)));
using Integers = std::int32_t __attribute__((vector_size(kLanesBytes), aligned(kLanesBytes)));

std::int32_t residual_of(std::int32_t code) {
  const auto bits = static_cast<std::uint32_t>(code);
  return static_cast<std::int32_t>(bits >> 1 ^ -(bits & 1));
}

// Of the samples from `first` on, one after the other. kOrder 0: the predictor's.
template <unsigned kOrder>
void restore(const FlacPredictor& predictor, std::size_t first, std::size_t end, std::int32_t* samples) {
  const unsigned order = kOrder == 0 ? predictor.order : kOrder;
  for (std::size_t at = first; at < end; ++at) {
    std::int64_t sum = 0;
    // The latest sample comes last: everything else can be summed before it is known.
#pragma GCC unroll 12
    for (unsigned i = order; i > 0; --i) sum += std::int64_t{predictor.weights[i - 1]} * samples[at - i];
    const auto prediction = static_cast<std::uint32_t>(sum >> predictor.shift);
    samples[at] = static_cast<std::int32_t>(prediction + static_cast<std::uint32_t>(residual_of(samples[at])));
  }
}

using Restore = void (*)(const FlacPredictor&, std::size_t, std::size_t, std::int32_t*);

template <std::size_t... kOrders>
constexpr std::array<Restore, sizeof...(kOrders)> restorers(std::index_sequence<kOrders...> /*orders*/) {
  return {restore<kOrders>...};
}

void restore_row(const FlacRow& row, std::size_t end, std::int32_t* samples) {
  constexpr auto kRestorers = restorers(std::make_index_sequence<kUnrolledOrderMax + 1>());
  const FlacPredictor& predictor = row.predictor;
  const Restore restore = kRestorers[predictor.order <= kUnrolledOrderMax ? predictor.order : 0];
  restore(predictor, predictor.order, std::min(end, row.length), samples);
}

// Whether no sum of theirs needs more than 32 bits.
bool is_narrow(const FlacRow& row) {
  std::int64_t most = 0;
  for (unsigned i = 0; i < row.predictor.order; ++i) most += std::abs(std::int64_t{row.predictor.weights[i]});
  return most << (row.bits - 1) <= std::int64_t{0x7fffffff};
}

// Eight rows side by side, each in its lane: a vector has the samples of one position. Restores samples from `first`
// on, which is a multiple of kLanes and not below kOrder; what rows shorter than `end` hold behind their length is
// lost.
template <unsigned kOrder>
SLUICE_INLINE void restore_lanes(std::span<const FlacRow> rows, std::size_t stride, std::size_t first, std::size_t end,
                                 std::int32_t* samples) {
  Words weights[kOrder] = {};
  Integers shifts = {};
  Words past[kOrder + kLanes];  // the earliest first
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t i = 0; i < kOrder; ++i) {
      past[i][lane] = static_cast<std::uint32_t>(samples[lane * stride + first - kOrder + i]);
      if (lane < rows.size()) weights[i][lane] = static_cast<std::uint32_t>(rows[lane].predictor.weights[i]);
    }
    if (lane < rows.size()) shifts[lane] = static_cast<std::int32_t>(rows[lane].predictor.shift);
  }
  for (std::size_t at = first; at < end; at += kLanes) {
    Lanes block[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      load(reinterpret_cast<const float*>(samples + lane * stride + at), block[lane]);
    }
    transpose(block);
#pragma GCC unroll 8
    for (std::size_t k = 0; k < kLanes; ++k) {
      const auto codes = __builtin_bit_cast(Words, block[k]);
      Words sums = {};
#pragma GCC unroll 32
      for (std::size_t i = kOrder; i > 0; --i) sums += weights[i - 1] * past[kOrder + k - i];
      const auto predictions = __builtin_bit_cast(Words, __builtin_bit_cast(Integers, sums) >> shifts);
      past[kOrder + k] = predictions + (codes >> 1 ^ -(codes & 1));
    }
    for (std::size_t k = 0; k < kLanes; ++k) block[k] = __builtin_bit_cast(Lanes, past[kOrder + k]);
    transpose(block);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      store(block[lane], reinterpret_cast<float*>(samples + lane * stride + at));
    }
    for (std::size_t i = 0; i < kOrder; ++i) past[i] = past[i + kLanes];
  }
}

SLUICE_INLINE void restore_rows(std::span<const FlacRow> rows, std::size_t stride, std::size_t first, std::size_t end,
                                std::int32_t* samples) {
  if (first == kUsualOrder) {
    restore_lanes<kUsualOrder>(rows, stride, first, end, samples);
  } else {
    restore_lanes<kFlacOrderMax>(rows, stride, first, end, samples);
  }
}

void restore_rows_portably(std::span<const FlacRow> rows, std::size_t stride, std::size_t first, std::size_t end,
                           std::int32_t* samples) {
  restore_rows(rows, stride, first, end, samples);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void restore_rows_widely(std::span<const FlacRow> rows, std::size_t stride,
                                                         std::size_t first, std::size_t end, std::int32_t* samples) {
  restore_rows(rows, stride, first, end, samples);
}
#endif

void restore_all(std::span<const FlacRow> rows, std::size_t stride, [[maybe_unused]] Registers registers,
                 std::int32_t* samples) {
  std::size_t order = 0, end = 0;
  for (const FlacRow& row : rows) {
    order = std::max<std::size_t>(order, row.predictor.order);
    end = std::max(end, row.length);
  }
  const std::size_t first = !std::ranges::all_of(rows, is_narrow) ? end
                            : order <= kUsualOrder                ? kUsualOrder
                                                                  : kFlacOrderMax;
  for (std::size_t i = 0; i < rows.size(); ++i) restore_row(rows[i], first, samples + i * stride);
  if (first >= end) return;
#if defined(__x86_64__)
  if (are_wide(registers)) return restore_rows_widely(rows, stride, first, end, samples);
#endif
  restore_rows_portably(rows, stride, first, end, samples);
}

// Whether no sample has more bits than its row.
bool fits(const FlacRow& row, const std::int32_t* samples) {
  std::uint32_t magnitudes = 0;
  for (std::size_t i = 0; i < row.length; ++i)
    magnitudes |= static_cast<std::uint32_t>(samples[i] ^ (samples[i] >> 31));
  return magnitudes >> (row.bits - 1) == 0;
}

}  // namespace

bool add_flac_predictions(std::span<const FlacRow> rows, std::size_t stride, Registers registers,
                          std::int32_t* samples) {
  restore_all(rows, stride, registers, samples);
  for (const FlacRow& row : rows) {
    if (!fits(row, samples)) return false;
    const unsigned wasted = row.wasted;  // A copy, which no sample can be.
    for (std::size_t i = 0; wasted > 0 && i < row.length; ++i) {
      samples[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(samples[i]) << wasted);
    }
    samples += stride;
  }
  return true;
}

}  // namespace sluice::pipeline::audio
