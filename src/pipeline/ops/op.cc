#include "src/pipeline/ops/op.h"

namespace sluice::pipeline {

Result<void> Op::change(PlannedImage& /*image*/, TorchRandom& /*random*/) const { return {}; }

void Op::draw(ImageSize /*size*/, TorchRandom& /*random*/, std::span<std::uint8_t> /*drawn*/) const {}

void Op::change(std::span<float> /*planes*/, ImageSize /*size*/, std::span<const std::uint8_t> /*drawn*/) const {}

}  // namespace sluice::pipeline
