// An image of one sample whose pixels are computed when an operation needs them, and not before.
//
// This is the fusion of a pipeline. Crops, one resize and flips only change a plan. The first operation that needs
// pixels decodes, crops, resizes and flips at once: only what the plan shows is decoded and computed. What the plan
// cannot express (a second resize, a resize after a flip) computes the pixels so far and starts a new plan on them.
//
// Thread safety: none. Memory: the buffers grow to the largest image seen.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/image_decoder.h"
#include "src/pipeline/op_costs.h"
#include "src/pipeline/resampler.h"

namespace sluice::pipeline {

// What the images of one thread share, one image at a time.
struct ImageBuffers {
  ImageDecoder decoder;
  Resampler resampler;
  std::vector<std::uint8_t> pixels;  // of the image, once computed; readable for kReadableBytesBehindPixels more
  std::vector<std::uint8_t> spare;
  OpCosts costs;
  Stopwatch stopwatch;  // of the sample; started when its file has been read
};

// Where the pixels of a border come from: numpy.pad's modes, which torchvision uses.
enum class PaddingMode { kConstant, kEdge, kReflect, kSymmetric };

struct Padding {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  std::array<std::uint8_t, 3> fill{};  // of kConstant
  PaddingMode mode = PaddingMode::kConstant;
};

class PlannedImage {
 public:
  // An image of `stored` pixels that `buffers.decoder` has opened.
  PlannedImage(ImageSize stored, PassOrder order, ImageBuffers& buffers)
      : plan_(stored), order_(order), buffers_(&buffers) {}

  // An image of the pixels that lie in `buffers.pixels`.
  static PlannedImage of_pixels(ImageSize size, PassOrder order, ImageBuffers& buffers) {
    PlannedImage image(size, order, buffers);
    image.is_computed_ = true;
    return image;
  }

  ImageSize size() const { return plan_.current(); }
  const GeometryPlan& plan() const { return plan_.plan(); }

  // REQUIRES: the box is not empty and inside the image
  void crop(const Box& box) { plan_.crop(box); }
  void flip_horizontally() { plan_.flip_horizontally(); }
  void flip_vertically() { plan_.flip_vertically(); }

  // Errors of these: DataLoss and InvalidArgument of the decoder; InvalidArgument for an image of more than
  // kMaxImagePixels pixels.
  Result<void> resize(ImageSize size, Interpolation interpolation);
  Result<void> pad(const Padding& padding);

  // The pixels [height][width][3], to be changed in place. Valid until the next call of anything else.
  Result<std::span<std::uint8_t>> pixels();

  // Replaces the pixels by others of the same size, which `make` computes from the present ones.
  using Make = std::function<void(std::span<const std::uint8_t> from, std::span<std::uint8_t> to)>;
  Result<void> replace(const Make& make);

  // Whether an operation has asked for pixels since the last call, rather than changed the plan.
  bool take_was_touched() { return std::exchange(was_touched_, false); }

  // REQUIRES: output has 3 bytes for each pixel of size()
  Result<void> write_to(std::span<std::uint8_t> output);

 private:
  Result<void> compute();
  std::span<std::uint8_t> spare_for(ImageSize size);
  Result<void> run_plan(std::span<std::uint8_t> output);

  PlanBuilder plan_;
  PassOrder order_;
  ImageBuffers* buffers_;
  bool was_touched_ = false;
  bool is_computed_ = false;  // the plan is one on buffers_->pixels, else on the file
};

}  // namespace sluice::pipeline
