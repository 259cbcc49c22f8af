// From the pixels of a sample to its tensor: uint8 [height][width][channels] to [channels][height][width], with the
// pipeline's operations on tensors. There are 3 channels, or 1.
//
// Operations that change each element by its value and channel alone fuse into a table, if they come first: there are
// only 256 bytes, so each has one answer per channel. The table is made by running the operations on all of them.
// Operations behind those run on the tensor, one after the other.
//
// Thread safety: immutable. The operations must outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/pipeline/ops/op.h"

namespace sluice::pipeline {

class TensorConversion {
 public:
  // `ops` begin with the one that makes a tensor of an image. Without any, bytes stay bytes.
  TensorConversion(std::span<const Op* const> ops, ImageSize size, int channels = 3);

  std::string_view dtype() const { return makes_floats_ ? "float32" : "uint8"; }
  std::size_t element_bytes() const { return makes_floats_ ? sizeof(float) : 1; }

  // What the draws of the operations take behind a sample's pixels.
  std::size_t drawn_bytes() const;

  // REQUIRES: drawn.size() == drawn_bytes()
  void draw(TorchRandom& random, std::span<std::uint8_t> drawn) const;

  // REQUIRES: tensor.size() == pixels.size() * element_bytes(), and tensor is aligned for its elements
  void apply(std::span<const std::uint8_t> pixels, std::span<const std::uint8_t> drawn,
             std::span<std::byte> tensor) const;

 private:
  ImageSize size_;
  int channels_;
  bool makes_floats_;
  std::vector<const Op*> behind_table_;
  std::array<std::array<float, 256>, 3> table_{};
};

}  // namespace sluice::pipeline
