// The two inner loops of a resize, in one version for every machine and two for x86 processors.
//
// All versions give the same bytes: the sums are integers. Internal to the pipeline library.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/pipeline/resample_taps.h"

namespace sluice::pipeline {

// Rows handed to one call of ResampleKernels::horizontal at most.
inline constexpr int kRowsPerCall = 4;

struct ResampleKernels {
  const char* name;

  // Resizes `row_count` rows of RGB pixels. sources[r] is the row's first needed pixel (taps.first_input) and is
  // readable for kReadableBytesBehindPixels behind taps.input_count pixels; targets[r] gets taps.outputs.size() pixels
  // and no byte more. REQUIRES: 1 <= row_count <= kRowsPerCall
  void (*horizontal)(const AxisTaps& taps, const std::uint8_t* const* sources, std::uint8_t* const* targets,
                     int row_count);

  // Makes one row of `row_bytes` bytes as the weighted sum of rows: tap i reads source + i * stride_bytes. The sources
  // are readable for kReadableBytesBehindPixels behind row_bytes; the target is written to the byte.
  void (*vertical)(const AxisTaps& taps, const AxisTaps::Output& output, const std::uint8_t* source,
                   std::size_t stride_bytes, std::uint8_t* target, std::size_t row_bytes);
};

const ResampleKernels& portable_kernels();

// Those that this processor can run, the fastest last; none on other architectures.
std::vector<const ResampleKernels*> x86_kernels();

// All that this machine can run; the last is the fastest.
std::vector<const ResampleKernels*> available_kernels();

// The fastest of them.
const ResampleKernels& best_kernels();

}  // namespace sluice::pipeline
