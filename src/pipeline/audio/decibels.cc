#include "src/pipeline/audio/decibels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {
namespace {

using Integers = std::int32_t __attribute__((vector_size(kLanes * sizeof(std::int32_t))));

constexpr std::int32_t kRootOfHalf = 0x3f3504f3;  // its bits: mantissas are taken from there up to the root of 2
constexpr int kMantissaBits = 23;

// With s = (m - 1) / (m + 1), log m = 2 (s + s^3 / 3 + s^5 / 5 + ...). For these mantissas s^2 is below 0.0295, so the
// terms from s^11 on are below 3e-9 of the first.
SLUICE_INLINE void log10_of(const Lanes& value, Lanes& logarithm) {
  constexpr float kLog10Of2 = 0.301029995663981F;
  constexpr float kTwiceLog10OfE = 0.868588963806504F;
  auto bits = __builtin_bit_cast(Integers, value);
  const Integers exponent = (bits - kRootOfHalf) >> kMantissaBits;
  bits -= exponent << kMantissaBits;
  const auto mantissa = __builtin_bit_cast(Lanes, bits);
  const Lanes s = (mantissa - 1.0F) / (mantissa + 1.0F);
  const Lanes square = s * s;
  Lanes series = square * (1.0F / 9.0F) + (1.0F / 7.0F);
  series = series * square + (1.0F / 5.0F);
  series = series * square + (1.0F / 3.0F);
  series = series * square * s + s;
  logarithm = __builtin_convertvector(exponent, Lanes) * kLog10Of2 + series * kTwiceLog10OfE;
}

struct Extremes {
  Integers finite;  // all bits of a lane, or none
  LaneRow largest;
};

SLUICE_INLINE void take_eight(const DecibelPlan& plan, const float* from, float* to, Extremes& seen) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  Lanes value;
  load(from, value);
  seen.finite &= (value <= kLargest) & (value >= -kLargest);
  const Lanes least = Lanes{} + plan.least;
  value = value > least ? value : least;
  Lanes result;
  log10_of(value, result);
  result = result * plan.multiplier - plan.reference;
  seen.largest.lanes = seen.largest.lanes > result ? seen.largest.lanes : result;
  store(result, to);
}

SLUICE_INLINE bool take_all(const DecibelPlan& plan, std::span<const float> values, std::span<float> results) {
  Extremes seen{.finite = ~Integers{}, .largest = {Lanes{} - std::numeric_limits<float>::infinity()}};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) take_eight(plan, values.data() + i, results.data() + i, seen);
  if (const std::size_t rest = values.size() - i; rest > 0) {
    float last[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) last[lane] = values[i + std::min(lane, rest - 1)];
    take_eight(plan, last, last, seen);
    std::copy_n(last, rest, results.data() + i);
  }
  bool finite = true;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    finite = finite && seen.finite[lane] != 0;
    largest = std::max(largest, seen.largest.lanes[lane]);
  }
  if (plan.range) {
    const float floor = largest - *plan.range;
    for (float& result : results) result = result < floor ? floor : result;
  }
  return finite;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) bool take_all_widely(const DecibelPlan& plan, std::span<const float> values,
                                                     std::span<float> results) {
  return take_all(plan, values, results);
}
#endif

}  // namespace

bool to_decibels(const DecibelPlan& plan, std::span<const float> values, [[maybe_unused]] Registers registers,
                 std::span<float> results) {
  if (!std::isnormal(plan.least) || plan.least < 0 || !std::isfinite(plan.multiplier)) return false;
#if defined(__x86_64__)
  if (are_wide(registers)) {
    return take_all_widely(plan, values, results);
  }
#endif
  return take_all(plan, values, results);
}

}  // namespace sluice::pipeline::audio
