// Where the pixels of an output image come from.
//
// Crops, one resize and flips of an image reduce to one plan. Crop the decoded image to `source`, resize that to
// `resized`, keep `window` of the result, mirror it if `flip` or `flip_vertical`. Only the pixels that this needs are
// decoded and computed. Rounding follows torchvision 0.29's v1 transforms on PIL images, quoted at each function.
//
// Thread safety: pure functions and values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {

// All in pixels.
struct ImageSize {
  int height = 0;
  int width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Of RGB pixels.
constexpr std::size_t bytes_of(ImageSize size) {
  return static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
}

// An image of more is what PIL calls a decompression bomb, and refuses.
inline constexpr std::int64_t kMaxImagePixels = 178'956'970;

struct Box {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

// The first three are Pillow's. A tensor's are torch's interpolate() of uint8 with antialias: the same filters, whose
// weights are rounded to 16 bits, and the width always goes first.
enum class Interpolation { kBilinear, kBicubic, kNearest, kTensorBilinear, kTensorBicubic };

constexpr bool is_of_tensors(Interpolation interpolation) {
  return interpolation == Interpolation::kTensorBilinear || interpolation == Interpolation::kTensorBicubic;
}

struct RandomResizedCrop {
  ImageSize size;
  std::array<double, 2> scale{};     // share of the image's area
  std::array<double, 2> ratio{};     // width / height
  std::array<float, 2> log_ratio{};  // as torch.log of float32 gives it, see pipeline_spec.h
  Interpolation interpolation = Interpolation::kBilinear;
};

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
  bool flip_vertical = false;  // turn upside down

  // Whether the pass that changes the height comes first under `order`.
  bool height_first(PassOrder order) const;
};

// RandomResizedCrop.get_params: ten attempts at a box of random area and aspect ratio, then the largest centred box
// that respects the ratio. Consumes 2 draws per failed attempt and 4 for the successful one.
// One difference is known: torch's float32 exp is off by one unit in the last place for 1 % of its arguments, Sluice's
// is correctly rounded. By estimate that moves an edge by a pixel in less than one crop in a million.
Box random_resized_crop_box(const RandomResizedCrop& op, ImageSize image, TorchRandom& random);

// Resize with an int: the shorter side becomes `shorter_side`, the longer one int(shorter_side * long / short). A
// longer side above `max_size` becomes that, and shrinks the shorter one in proportion (to nothing, if the image is so
// long).
ImageSize shorter_side_resized(ImageSize image, int shorter_side, std::optional<int> max_size = {});

// CenterCrop without padding: int(round((image - crop) / 2.0)), where round() takes halves to the even number.
// REQUIRES: the crop fits into the image
Box center_crop_box(ImageSize image, ImageSize crop);

// Collects what is done to one image. Crops before the resize shrink `source`, later ones shrink `window`.
class PlanBuilder {
 public:
  explicit PlanBuilder(ImageSize input);

  ImageSize input() const { return input_; }
  ImageSize current() const { return {plan_.window.height, plan_.window.width}; }
  const GeometryPlan& plan() const { return plan_; }

  // Whether the plan changes nothing.
  bool is_identity() const;

  // REQUIRES: the box is not empty and inside the image as planned so far
  void crop(Box box);

  // Whether the result is plan().source as it is.
  bool only_crops() const { return !is_resized_ && !plan_.flip && !plan_.flip_vertical; }

  // A plan resizes once, and flips after it.
  bool can_resize() const { return only_crops(); }
  bool is_resized() const { return is_resized_; }
  // REQUIRES: can_resize(), or the plan has only flips besides, and it may resize before these: but for rounding, that
  // is the same
  void resize(ImageSize size, Interpolation interpolation);

  void flip_horizontally() { plan_.flip = !plan_.flip; }
  void flip_vertically() { plan_.flip_vertical = !plan_.flip_vertical; }

 private:
  void show_everything() { plan_.window = {0, 0, plan_.resized.height, plan_.resized.width}; }

  ImageSize input_;
  GeometryPlan plan_;
  bool is_resized_ = false;
};

}  // namespace sluice::pipeline
