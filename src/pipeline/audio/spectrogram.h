// Spectrograms of waveforms as torch.stft and torchaudio define them, in one pass over the samples: window, Fourier
// transform, squares (or magnitudes), and bands where they are asked for. Complex numbers never leave the cache.
//
// The results differ from torch's in rounding only (docs/designs/audio.md has the bound), and are the same bits on
// every processor.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "src/pipeline/audio/band_weights.h"
#include "src/pipeline/audio/lane_transform.h"
#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

// The numbers before the first sample and behind the last, half a transform each.
enum class Border { kNone, kReflected, kZeros };

struct SpectrogramPlan {
  std::size_t transform_length;
  std::size_t hop_length;
  Border border;
  bool magnitudes;  // else their squares
  float scale;      // of the magnitudes
};

class Spectrogram {
 public:
  // A frame whose squares sum up to less, but not to zero, loses digits to underflow.
  static constexpr float kQuietestSum = 1e-30F;

  // Number of frames; 0 where torch refuses the length.
  static std::size_t frames_of(const SpectrogramPlan& plan, std::size_t samples);

  // Whether transforms of that length can be computed here.
  static bool supports(std::size_t length) { return LaneTransform::supports(length % 2 == 0 ? length / 2 : length); }

  // Computes the plan's spectrograms of bins from now on. `window` stands in the middle of a transform.
  // REQUIRES: supports(plan.transform_length), window.size() <= plan.transform_length
  void prepare(const SpectrogramPlan& plan, std::span<const float> window);

  // From now on bands in the place of bins. `matrix`: [bins()][count].
  void show_bands(const float* matrix, std::size_t count);

  std::size_t bins() const { return plan_.transform_length / 2 + 1; }
  std::size_t width() const { return shows_bands_ ? bands_.bands().size() : bins(); }

  // Writes [frames_of()][width()] numbers. False, and the numbers are unspecified, where a frame's squares are not
  // finite (a product with a dense matrix, as torch computes it, spreads that to all bands) or below kQuietestSum.
  bool run(std::span<const float> waveform, Registers registers, float* shown);

 private:
  struct Kernel;

  const LaneTransform& transform_of(std::size_t length);

  // The samples of a frame: in the waveform, or copied where it reaches beyond.
  const float* frame(std::span<const float> waveform, std::size_t number, std::size_t lane);

  SpectrogramPlan plan_{};
  const LaneTransform* transform_ = nullptr;
  std::vector<std::unique_ptr<LaneTransform>> transforms_;
  std::vector<Root> roots_;  // of the transform's length: what real signals of even length need
  std::vector<float> window_;
  bool shows_bands_ = false;
  BandWeights bands_;
  std::vector<ComplexLanes> rows_, spare_rows_;
  std::vector<LaneRow> bin_rows_, band_rows_;
  std::vector<float> edges_;  // [kLanes][transform_length]
};

}  // namespace sluice::pipeline::audio
