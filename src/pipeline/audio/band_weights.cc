#include "src/pipeline/audio/band_weights.h"

#include <algorithm>
#include <cstring>

namespace sluice::pipeline::audio {

void BandWeights::pack(const float* matrix, std::size_t bins, std::size_t bands) {
  const std::size_t size = bins * bands;
  if (bands == bands_.size() && size == matrix_.size() &&
      std::memcmp(matrix, matrix_.data(), size * sizeof(float)) == 0) {
    return;
  }
  matrix_.assign(matrix, matrix + size);
  firsts_.assign(bands, static_cast<int>(bins));
  ends_.assign(bands, 0);
  for (std::size_t bin = 0; bin < bins; ++bin) {  // By rows, so that the compiler takes several bands at once.
    const float* const row = matrix + bin * bands;
    const int number = static_cast<int>(bin);
    for (std::size_t band = 0; band < bands; ++band) {
      const bool counts = row[band] != 0.0F;
      firsts_[band] = std::min(firsts_[band], counts ? number : static_cast<int>(bins));
      ends_[band] = counts ? number + 1 : ends_[band];
    }
  }
  bands_.clear();
  weights_.clear();
  for (std::size_t band = 0; band < bands; ++band) {
    const auto first = static_cast<std::size_t>(firsts_[band]);
    const auto end = static_cast<std::size_t>(std::max(firsts_[band], ends_[band]));
    bands_.push_back({first, end - first, weights_.size()});
    for (std::size_t bin = first; bin < end; ++bin) weights_.push_back(matrix[bin * bands + band]);
  }
}

}  // namespace sluice::pipeline::audio
