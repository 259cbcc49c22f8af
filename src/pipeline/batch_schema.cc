#include "src/pipeline/batch_schema.h"

namespace sluice::pipeline {
namespace {

constexpr std::size_t kTensorAlignmentBytes = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kTensorAlignmentBytes - 1) / kTensorAlignmentBytes * kTensorAlignmentBytes;
}

}  // namespace

std::size_t BatchSchema::offset_of(std::size_t field, std::size_t samples) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < field; ++i) offset = aligned(offset + samples * fields_[i].sample_bytes);
  return offset;
}

std::vector<TensorLayout> BatchSchema::layout(std::size_t samples) const {
  std::vector<TensorLayout> tensors;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(samples)};
    shape.insert(shape.end(), fields_[i].sample_shape.begin(), fields_[i].sample_shape.end());
    tensors.push_back({fields_[i].dtype, std::move(shape), offset_of(i, samples), samples * fields_[i].sample_bytes});
  }
  return tensors;
}

std::size_t BatchSchema::batch_bytes(std::size_t samples) const {
  const std::size_t last = fields_.size() - 1;
  return offset_of(last, samples) + samples * fields_[last].sample_bytes;
}

}  // namespace sluice::pipeline
