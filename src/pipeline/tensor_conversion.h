// torchvision's ToTensor and Normalize as a table: there are only 256 bytes, so each has one answer per channel.
//
// The table's entries are torch's own float32 arithmetic, byte / 255, then minus mean, divided by std, each rounded.
//
// Thread safety: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "src/pipeline/pipeline_spec.h"

namespace sluice::pipeline {

class TensorConversion {
 public:
  // Without to_tensor pixels stay bytes and only change from [height][width][3] to [3][height][width].
  TensorConversion(bool to_tensor, const std::optional<Normalize>& normalize);

  std::string_view dtype() const { return to_tensor_ ? "float32" : "uint8"; }
  std::size_t element_bytes() const { return to_tensor_ ? sizeof(float) : 1; }

  // REQUIRES: tensor.size() == pixels.size() * element_bytes(), and tensor is aligned for its elements
  void apply(std::span<const std::uint8_t> pixels, std::span<std::byte> tensor) const;

 private:
  bool to_tensor_;
  std::array<std::array<float, 256>, 3> table_{};
};

}  // namespace sluice::pipeline
