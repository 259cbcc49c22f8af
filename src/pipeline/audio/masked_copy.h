// SpecAugment's masks: a copy of a spectrogram in which neighbouring rows or columns have one value.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

struct MaskPlan {
  std::size_t rows, columns;
  bool columns_first;  // In memory, what is copied has its columns one after the other.
  bool masks_rows;     // else columns
  std::size_t first, count;
  float value;
};

// Writes [rows][columns] floats.
// REQUIRES: first + count is not more than there are
void copy_masked(const MaskPlan& plan, const float* from, Registers registers, float* to);

}  // namespace sluice::pipeline::audio
