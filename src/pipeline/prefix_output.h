// What a pipeline's prefix makes of a file, as it is kept: the pixels [height][width][3], then height and width as u32,
// little-endian.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

// A larger one is not kept: it is more than any image that a pipeline goes on to work with.
inline constexpr std::size_t kOutputBytesMax = std::size_t{64} << 20;

std::size_t output_bytes(ImageSize size);

void append_output_size(ImageSize size, std::vector<std::uint8_t>& output);

// Takes the size from the end of a kept output. DataLoss where the pixels do not have it.
Result<ImageSize> take_output_size(std::vector<std::uint8_t>& output);

}  // namespace sluice::pipeline
