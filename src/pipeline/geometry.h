// Where the pixels of an output image come from.
//
// All geometric operations of a pipeline, applied to one image, reduce to one plan: crop the decoded image to `source`,
// resize that to `resized`, keep `window` of the result, mirror it if `flip`. Only the pixels that this needs are
// decoded and computed. Rounding follows torchvision 0.29's v1 transforms on PIL images, quoted at each function.
//
// Thread safety: pure functions and values.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <variant>

#include "src/base/result.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {

// All in pixels.
struct ImageSize {
  int height = 0;
  int width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

struct Box {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

enum class Interpolation { kBilinear, kBicubic };

struct RandomResizedCrop {
  ImageSize size;
  std::array<double, 2> scale{};     // share of the image's area
  std::array<double, 2> ratio{};     // width / height
  std::array<float, 2> log_ratio{};  // as torch.log of float32 gives it, see pipeline_spec.h
  Interpolation interpolation = Interpolation::kBilinear;
};

struct Resize {
  std::optional<int> shorter_side;  // keeps the aspect ratio; else
  ImageSize size;                   // exactly this
  Interpolation interpolation = Interpolation::kBilinear;
};

struct CenterCrop {
  ImageSize size;
};

using GeometricOp = std::variant<RandomResizedCrop, Resize, CenterCrop>;

// Which of the two passes of a resize goes first. The rounding between them makes it show in the last bit.
enum class PassOrder {
  kHeightFirstIfShrunkMore,  // Pillow 13: height first if it loses pixels, and more than twice as many as the width
  kWidthFirst,               // Pillow up to 12 (the last ones except images over 100 times as high as wide)
};

struct GeometryPlan {
  Box source;         // in the image as stored in the file
  ImageSize resized;  // what `source` is resized to; the same size when no operation resizes
  Box window;         // in the resized image
  bool flip = false;  // mirror left and right
  Interpolation interpolation = Interpolation::kBilinear;

  // Whether the pass that changes the height comes first under `order`.
  bool height_first(PassOrder order) const;
};

// RandomResizedCrop.get_params: ten attempts at a box of random area and aspect ratio, then the largest centred box
// that respects the ratio. Consumes 2 draws per failed attempt and 4 for the successful one.
// One difference is known: torch's float32 exp is off by one unit in the last place for 1 % of its arguments, ours is
// correctly rounded. By estimate that moves an edge by a pixel in less than one crop in a million.
Box random_resized_crop_box(const RandomResizedCrop& op, ImageSize image, TorchRandom& random);

// Resize with an int: the shorter side becomes `shorter_side`, the longer one int(shorter_side * long / short).
ImageSize shorter_side_resized(ImageSize image, int shorter_side);

// CenterCrop without padding: int(round((image - crop) / 2.0)), where round() takes halves to the even number.
// REQUIRES: the crop fits into the image
Box center_crop_box(ImageSize image, ImageSize crop);

// Applies `ops` in order, then the flip with probability `flip_probability` (no draw when there is no flip).
// InvalidArgument when a centre crop does not fit (torchvision would pad) or an image degenerates to nothing.
// REQUIRES: at most one of `ops` resizes.
Result<GeometryPlan> plan_geometry(std::span<const GeometricOp> ops, std::optional<double> flip_probability,
                                   ImageSize image, TorchRandom& random);

}  // namespace sluice::pipeline
