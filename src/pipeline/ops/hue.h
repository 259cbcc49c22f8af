// torchvision's adjust_hue on PIL images: to Pillow's 8-bit HSV, a turn of H, and back.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {

// `turn`: of 256 to the circle.
void turn_hues(std::int32_t turn, Pixels pixels, Registers registers = Registers::kWidest);

}  // namespace sluice::pipeline
