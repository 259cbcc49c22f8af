// A matrix from the bins of a spectrum to bands (mel filters), of which most entries are zero: each band's weights from
// its first to its last one that is not.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <cstddef>
#include <vector>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

class BandWeights {
 public:
  struct Band {
    std::size_t first_bin, count, first_weight;
  };

  // `matrix`: [bins][bands]. The same one as before takes no more than a look at it.
  void pack(const float* matrix, std::size_t bins, std::size_t bands);

  const std::vector<Band>& bands() const { return bands_; }
  const float* weights() const { return weights_.data(); }

 private:
  std::vector<float> matrix_;
  std::vector<int> firsts_, ends_;
  std::vector<Band> bands_;
  std::vector<float> weights_;
};

// sums[band] = the bins' weighted sum, lane by lane.
SLUICE_INLINE void sum_bands(const BandWeights& weights, const LaneRow* bins, LaneRow* sums) {
  for (std::size_t number = 0; number < weights.bands().size(); ++number) {
    const BandWeights::Band& band = weights.bands()[number];
    const LaneRow* const values = bins + band.first_bin;
    const float* const factors = weights.weights() + band.first_weight;
    Lanes sum = {};
    for (std::size_t i = 0; i < band.count; ++i) sum += values[i].lanes * factors[i];
    sums[number].lanes = sum;
  }
}

}  // namespace sluice::pipeline::audio
