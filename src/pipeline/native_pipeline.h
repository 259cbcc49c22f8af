// A pipeline that runs without Python: image files in, pixels out.
//
// The specification is JSON (docs/designs/first-slice.md, section 5). The operations give what torchvision's v1
// transforms give on PIL images after torch.manual_seed(seed), byte for byte where the JPEG decoders agree.
// A sample is made in two steps, so that a worker can ship a quarter of the bytes:
//   produce()  file -> decoded, cropped, resized, flipped uint8 [height][width][3]   (worker, the expensive part)
//   finish()   those pixels -> the tensor's own layout and type                       (feeder, while filling the batch)
// Whatever the specification cannot express stays in Python: parse() refuses it and names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::pipeline {

class FileReader;

// Where one tensor of a batch lies, relative to the start of the batch's slot.
struct TensorLayout {
  std::string_view dtype;  // torch's name ("float32"); static storage
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  // bytes, a multiple of 64
  std::size_t nbytes = 0;
};

// CPU seconds that the calling thread spent in produce(), by stage. Those of finish() are the caller's to measure.
struct StageSeconds {
  double read = 0;      // the file
  double decode = 0;    // JPEG to RGB, only the part that the crop needs
  double resample = 0;  // crop, resize and flip
};

// The buffers of one thread: grown to the largest image seen, never shrunk. Bound: about 8 bytes per decoded pixel.
// Thread safety: none; one per thread, usable with any pipeline.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  // Totals since the last call of take_stage_seconds (or since construction).
  StageSeconds take_stage_seconds();

 private:
  friend class NativePipeline;
  struct State;
  std::unique_ptr<State> state_;
};

// Thread safety: immutable after parse(); all methods may be called from any number of threads.
class NativePipeline {
 public:
  // InvalidArgument names the field: "ops[2].op: ...". Files are not touched until produce(). `files` defaults to the
  // file system; it is the seam for tests.
  static Result<std::shared_ptr<const NativePipeline>> parse(std::string_view spec_json,
                                                             std::shared_ptr<const FileReader> files = nullptr);
  ~NativePipeline();

  std::size_t sample_count() const;

  // Size of one sample as produce() makes it: height * width * 3.
  std::size_t wire_sample_bytes() const;

  // Size of one sample in the images tensor of a batch.
  std::size_t final_sample_bytes() const;

  // The batch's tensors in order: images [batch, 3, height, width], then labels [batch] int64. No overlap, no gap
  // larger than the alignment. A batch's slot needs batch_bytes(batch).
  std::vector<TensorLayout> batch_layout(std::size_t batch) const;
  std::size_t batch_bytes(std::size_t batch) const;

  // Computes sample `index` with the random draws of `seed` into `pixels`.
  // REQUIRES: pixels.size() == wire_sample_bytes()
  // Errors name the file: NotFound and PermissionDenied as the system says; DataLoss for a truncated or damaged file;
  // InvalidArgument for an index outside the data set, an image that is no JPEG or that this pipeline cannot treat as
  // torchvision would (the message says what to do). No input makes it crash. After an error the workspace is usable,
  // the pixels are unspecified.
  Result<void> produce(std::int64_t index, std::uint32_t seed, std::span<std::uint8_t> pixels,
                       Workspace& workspace) const;

  // REQUIRES: 0 <= index < sample_count()
  std::int64_t label(std::int64_t index) const;

  // Turns the pixels of one sample into its part of the images tensor: float32 [3, height, width] after to_tensor (and
  // normalize), else uint8 [3, height, width].
  // REQUIRES: wire_pixels.size() == wire_sample_bytes(), final_image.size() == final_sample_bytes(), and final_image
  // is aligned for its type (batch_layout's offsets are, and so is every sample after the first).
  void finish(std::span<const std::uint8_t> wire_pixels, std::span<std::byte> final_image) const;

 private:
  struct State;
  explicit NativePipeline(std::unique_ptr<const State> state);
  Result<void> make_pixels(std::uint32_t seed, std::span<std::uint8_t> pixels, Workspace& workspace) const;

  std::unique_ptr<const State> state_;
};

}  // namespace sluice::pipeline
