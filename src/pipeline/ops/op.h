// One operation of a pipeline with its parameters (docs/designs/op-graph.md).
//
// A sample passes through the operations in the order of the specification, and each draws its random parameters when
// its turn comes: the draws are torchvision's, in torchvision's order. What an operation does to an image may wait
// until pixels are needed (planned_image.h). What it does to a tensor waits until the sample has reached its batch; its
// draws travel there behind the pixels.
//
// Thread safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/base/result.h"
#include "src/pipeline/planned_image.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {

enum class ValueKind { kBytes, kImage, kTensor };

// What flows from one operation to the next: the bytes of a file, an image (uint8 [height][width][3]), or a tensor
// (float32 [channels, height, width]). A grey image has three equal channels, of which its tensor gets one: whatever
// operations do to Pillow's grey images, they do to each channel of those.
struct ValueType {
  ValueKind kind = ValueKind::kBytes;
  std::optional<ImageSize> size = {};  // where it is the same for every sample
  int channels = 3;                    // or 1: grey
};

class Op {
 public:
  Op() = default;
  virtual ~Op() = default;
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  // The kind of value that it takes.
  virtual ValueKind takes() const = 0;

  // What it makes of a value of the kind that it takes.
  virtual ValueType result_of(const ValueType& input) const = 0;

  // Whether it takes numbers from the sample's random generator, for whatever sample. One that does not may be done
  // once for all epochs (file_reader.h), so an operation has to say so.
  virtual bool draws() const { return true; }

  // Draws and changes an image. Errors do not name the file.
  virtual Result<void> change(PlannedImage& image, TorchRandom& random) const;

  // How many bytes the draws of an operation on tensors take on the wire.
  virtual std::size_t drawn_bytes() const { return 0; }

  // REQUIRES: drawn.size() == drawn_bytes()
  virtual void draw(ImageSize size, TorchRandom& random, std::span<std::uint8_t> drawn) const;

  // Whether each element of the tensor changes by its own value and channel alone. Such operations fuse into a table of
  // 256 answers (tensor_conversion.h).
  virtual bool is_pointwise() const { return false; }

  // Changes a tensor of 3 planes of `size`, or of 1, in place.
  virtual void change(std::span<float> planes, ImageSize size, std::span<const std::uint8_t> drawn) const;
};

}  // namespace sluice::pipeline
