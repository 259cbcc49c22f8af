#include "src/pipeline/audio/resampled_waveform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {
namespace {

// By the bits, as the compiler takes many integers at once.
bool are_finite(std::span<const float> samples) {
  constexpr std::uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (const float sample : samples) largest = std::max(largest, std::bit_cast<std::uint32_t>(sample) & kMagnitude);
  return largest < kInfinity;
}

}  // namespace

struct WaveformResampler::Kernel {
  // Two sums of vectors, then their lanes in a fixed order, so that all processors give the same bits.
  SLUICE_INLINE static float product(const float* samples, const float* weights, std::size_t vectors) {
    Lanes even = {}, odd = {};
    std::size_t i = 0;
    for (; i + 2 <= vectors; i += 2, samples += 2 * kLanes, weights += 2 * kLanes) {
      Lanes a, b, c, d;
      load(samples, a);
      load(weights, b);
      load(samples + kLanes, c);
      load(weights + kLanes, d);
      even += a * b;
      odd += c * d;
    }
    if (i < vectors) {
      Lanes a, b;
      load(samples, a);
      load(weights, b);
      even += a * b;
    }
    even += odd;
    return ((even[0] + even[4]) + (even[2] + even[6])) + ((even[1] + even[5]) + (even[3] + even[7]));
  }

  SLUICE_INLINE static void run(const WaveformResampler& self, std::span<float> resampled) {
    const float* block = self.padded_.data();
    for (std::size_t first = 0; first < resampled.size(); first += self.plan_.phases, block += self.plan_.stride) {
      const std::size_t count = std::min(self.plan_.phases, resampled.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        const Phase& phase = self.phases_[i];
        resampled[first + i] =
            product(block + phase.first_tap, self.weights_.data() + phase.first_weight, phase.vectors);
      }
    }
  }

#if defined(__x86_64__)
  __attribute__((target("avx2"))) static void run_widely(const WaveformResampler& self, std::span<float> resampled) {
    run(self, resampled);
  }
#endif
};

void WaveformResampler::prepare(const ResamplePlan& plan, const float* kernel) {
  plan_ = plan;
  phases_.clear();
  weights_.clear();
  float largest = 0;
  for (std::size_t i = 0; i < plan.phases * plan.taps; ++i) largest = std::max(largest, std::abs(kernel[i]));
  const float least = largest * kLeastShare;
  for (std::size_t phase = 0; phase < plan.phases; ++phase) {
    const float* const weights = kernel + phase * plan.taps;
    std::size_t first = 0, end = plan.taps;
    while (first < end && std::abs(weights[first]) <= least) ++first;
    while (end > first && std::abs(weights[end - 1]) <= least) --end;
    const std::size_t vectors = (end - first + kLanes - 1) / kLanes;
    phases_.push_back({first, weights_.size(), vectors});
    weights_.insert(weights_.end(), weights + first, weights + end);
    weights_.resize(phases_.back().first_weight + vectors * kLanes);
  }
}

bool WaveformResampler::run(std::span<const float> waveform, [[maybe_unused]] Registers registers,
                            std::span<float> resampled) {
  if (!are_finite(waveform)) return false;
  const std::size_t blocks = (resampled.size() + plan_.phases - 1) / plan_.phases;
  const std::size_t read = blocks * plan_.stride + plan_.taps + kLanes;
  padded_.assign(std::max(read, plan_.border + waveform.size()), 0.0F);
  std::ranges::copy(waveform, padded_.begin() + static_cast<std::ptrdiff_t>(plan_.border));
#if defined(__x86_64__)
  if (are_wide(registers)) {
    Kernel::run_widely(*this, resampled);
    return true;
  }
#endif
  Kernel::run(*this, resampled);
  return true;
}

}  // namespace sluice::pipeline::audio
