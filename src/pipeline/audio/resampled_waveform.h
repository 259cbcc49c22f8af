// Another sample rate by torchaudio's windowed sinc filters, of which only the products that count are added.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

// torchaudio's kernel: for each of `phases` outputs that `stride` inputs make, the weights of `taps` inputs, of which
// the first is `border` before the first of the inputs.
struct ResamplePlan {
  std::size_t phases, taps, stride, border;
};

class WaveformResampler {
 public:
  // A weight that is smaller, as a share of the largest, is left out.
  static constexpr float kLeastShare = 1e-10F;

  // `kernel`: [phases][taps], finite.
  void prepare(const ResamplePlan& plan, const float* kernel);

  // Writes the first resampled.size() outputs; there is silence around the waveform. False, and the outputs are
  // unspecified, where a sample is not finite: a product with all weights spreads it further.
  bool run(std::span<const float> waveform, Registers registers, std::span<float> resampled);

 private:
  struct Phase {
    std::size_t first_tap, first_weight, vectors;
  };
  struct Kernel;

  ResamplePlan plan_{};
  std::vector<Phase> phases_;
  std::vector<float> weights_;  // of each phase, filled up with zeros to whole vectors
  std::vector<float> padded_;   // the waveform with silence around it
};

}  // namespace sluice::pipeline::audio
