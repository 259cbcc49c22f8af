// An image of one sample whose pixels are computed when an operation needs them, and not before.
//
// This is the fusion of a pipeline. Crops, one resize and flips only change a plan. The first operation that needs
// pixels decodes, crops, resizes and flips at once: only what the plan shows is decoded and computed. What the plan
// cannot express (a second resize, a resize after a flip) computes the pixels so far and starts a new plan on them.
//
// Operations that change pixels wait, too, where that is exact: their changes run when the plan has run that they wait
// behind (late_change.h). The image is, from the inside: the file, or pixels; what `making_` makes of these; the plan;
// what `changes_` make of its pixels.
//
// Several images of one sample are made of pixels that they share, where these do not change.
//
// Thread safety: none. Memory: the buffers grow to the largest image seen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/image_decoder.h"
#include "src/pipeline/late_change.h"
#include "src/pipeline/op_costs.h"
#include "src/pipeline/resampler.h"

namespace sluice::pipeline {

// What the images of one thread share, one image at a time.
struct ImageBuffers {
  ImageDecoder decoder;
  Resampler resampler;
  std::vector<std::uint8_t> pixels;  // of the image, once computed; readable for kReadableBytesBehindPixels more
  std::vector<std::uint8_t> spare;
  std::vector<std::uint8_t> shared;          // of the images that are made of them
  std::vector<std::uint8_t> made;            // a part of an image
  std::vector<std::uint8_t> three_channels;  // of a sample whose wire form has one
  OpCosts costs;
  Stopwatch stopwatch;                     // of the sample; started when its file has been read
  SampledStopwatch stopwatches_in_memory;  // of samples without a file
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
  PlannedImage(ImageSize stored, PassOrder passes, ImageBuffers& buffers, OpOrder order = OpOrder::kExact)
      : plan_(stored), passes_(passes), order_(order), buffers_(&buffers) {}

  // An image of the pixels that lie in `buffers.pixels`.
  static PlannedImage of_pixels(ImageSize size, PassOrder passes, ImageBuffers& buffers,
                                OpOrder order = OpOrder::kExact) {
    PlannedImage image(size, passes, buffers, order);
    image.is_of_pixels_ = true;
    return image;
  }

  // An image of the pixels of `view`, which stay as they are.
  static PlannedImage of_view(const RgbView& view, PassOrder passes, ImageBuffers& buffers,
                              OpOrder order = OpOrder::kExact) {
    PlannedImage image(view.size, passes, buffers, order);
    image.view_ = view;
    return image;
  }

  ImageSize size() const { return plan_.current(); }
  // Whether Pillow opens it in the mode RGB. REQUIRES: it is of a file
  bool is_of_rgb_file() const { return buffers_->decoder.is_rgb(); }
  bool is_of_16_bits() const { return buffers_->decoder.has_16_bits(); }
  const GeometryPlan& plan() const { return plan_.plan(); }
  bool is_relaxed() const { return order_ == OpOrder::kRelaxed; }

  // The turn of the operation `name` begins and ends: what is done to pixels meanwhile, or waits, counts for it.
  void begin(std::string_view name);
  Result<void> end();

  // REQUIRES: the box is not empty and inside the image
  void crop(const Box& box) { plan_.crop(box); }

  // Errors of these and all below: DataLoss and InvalidArgument of the decoder; InvalidArgument for an image of more
  // than kMaxImagePixels pixels.
  Result<void> flip_horizontally();
  Result<void> flip_vertically();
  Result<void> resize(ImageSize size, Interpolation interpolation);
  Result<void> pad(const Padding& padding);

  // Changes each pixel by its own value. It waits behind crops and flips, and behind a resize that only picks pixels.
  void change_each(ChangeEach change) { changes_.push_back({waiting(), std::move(change), nullptr}); }

  // Replaces the pixels by others. Of these only what later crops show is made. Relaxed, a change that looks much the
  // same on a crop and on a smaller image waits behind both.
  enum class Scale { kIsFree, kMatters };
  Result<void> replace(MakePart make, Scale scale);

  // The pixels [height][width][3], to be changed in place. Valid until the next call of anything else.
  Result<std::span<std::uint8_t>> pixels();

  // Runs what waits, so that nothing before this has to do with anything behind it.
  Result<void> settle();

  // The pixels, for of_view(): valid until the next image of these buffers that is not of this view.
  // REQUIRES: the image is not used again
  Result<RgbView> share();

  // REQUIRES: output has 3 bytes for each pixel of size(); the image is not used again
  Result<void> write_to(std::span<std::uint8_t> output);

 private:
  struct Change {
    Waiting waiting;
    ChangeEach each;
    MakePart make;  // in place of `each`; relaxed only
  };
  struct Making {
    Waiting waiting;
    MakePart make;
  };

  bool is_turn_of(const Waiting& waiting) const { return waiting.number == number_ && is_turn_; }
  Waiting waiting() const { return {name_, number_, bytes_of(size())}; }
  bool may_wait_behind(ImageSize resized, Interpolation interpolation) const;
  bool has_making() const;
  // Whether the pixels are there, but for the changes of each.
  bool is_computed() const { return is_of_pixels_ && !making_ && plan_.is_identity(); }
  Result<void> compute();
  Result<void> run_plan(std::span<std::uint8_t> output);
  void run_making(const Box& part, std::span<std::uint8_t> output);
  void run_changes(std::span<std::uint8_t> pixels);
  void count(const Waiting& waiting, std::uint64_t bytes);

  PlanBuilder plan_;
  PassOrder passes_;
  OpOrder order_;
  ImageBuffers* buffers_;
  bool is_of_pixels_ = false;  // of buffers_->pixels, else of view_ or the file
  std::optional<RgbView> view_;
  std::optional<Making> making_;  // of these pixels, and the plan is one on what it makes
  std::vector<Change> changes_;   // of what the plan makes
  std::string_view name_;         // of the operation whose turn it is, or was last
  std::size_t number_ = 0;
  bool is_turn_ = false;
  bool was_touched_ = false;  // whether it has had pixels
};

}  // namespace sluice::pipeline
