// A pipeline that runs without Python: image files, ranges of files that hold images, or images in memory, in; pixels
// out.
//
// The specification: docs/designs/protocols.md, section 5; the design: docs/designs/op-graph.md. The operations give
// what torchvision's transforms give on PIL images after torch.manual_seed(seed), byte for byte where the JPEG decoders
// agree. A sample is made in two steps, so that a worker can ship a quarter of the bytes:
//   produce()  file -> its wire form: for each view uint8 [height][width][channels], then the draws of its operations
//              on tensors                                                           (worker)
//   finish()   wire form -> the tensor's own layout and type                        (feeder, while filling the batch)
// A pipeline that the specification cannot express stays in Python: parse() refuses it and names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/epoch_order.h"
#include "src/base/result.h"
#include "src/pipeline/batch_schema.h"
#include "src/pipeline/op_costs.h"

namespace sluice::pipeline {

class FileReader;
struct FilePart;
struct ImageContent;
class PixelTable;
class PlannedImage;
class ReadAhead;
struct SampleTrial;
class TorchRandom;

// The buffers of one thread: grown to the largest image seen, never shrunk. Bound: about 14 bytes per decoded pixel.
// Thread safety: none; one per thread, usable with any pipeline.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  // Totals since the last call of take_costs (or since construction), without what finish() costs.
  OpCosts take_costs();

 private:
  friend class NativePipeline;
  struct State;
  std::unique_ptr<State> state_;
};

// Thread safety: immutable after parse(); all methods may be called from any number of threads.
class NativePipeline {
 public:
  // InvalidArgument names the field: "ops[2].op: ...". Files are not touched until produce(). `files` defaults to the
  // file system; it is the seam for tests. `owner`: as for parse_pipeline_spec.
  static Result<std::shared_ptr<const NativePipeline>> parse(std::string_view spec,
                                                             std::shared_ptr<const FileReader> files = nullptr,
                                                             std::shared_ptr<const void> owner = nullptr);
  ~NativePipeline();

  std::size_t sample_count() const;
  // Whether samples are read from files; else they are in memory, and made within microseconds.
  bool has_files() const;

  // Size of the wire form of one sample.
  std::size_t wire_sample_bytes() const;

  // How many images a sample has.
  std::size_t view_count() const;

  // The tensors of a batch: "images" [3, height, width], or [1, height, width] of grey ones, for each view, then
  // "labels", int64 scalars.
  const BatchSchema& schema() const;

  // Computes sample `index` with the random draws of `seed` into `wire`.
  // REQUIRES: wire.size() == wire_sample_bytes()
  // Errors name the file, and the place of a range in it, or the number of an image in memory: NotFound and
  // PermissionDenied as the system says; DataLoss for a truncated or damaged file; InvalidArgument for an index outside
  // the data set, or an image that is no JPEG. The same for an image that this pipeline cannot treat as torchvision
  // would (the message says the way out). No input makes it crash. After an error the workspace is usable, the wire
  // form is unspecified.
  Result<void> produce(std::int64_t index, std::uint32_t seed, std::span<std::uint8_t> wire,
                       Workspace& workspace) const;

  // REQUIRES: 0 <= index < sample_count()
  std::int64_t label(std::int64_t index) const;

  // Begins to read what these samples are made of, as FileReader's; null where that is at hand, as files are. An index
  // outside the data set is passed over.
  std::shared_ptr<ReadAhead> read_ahead(std::span<const std::int64_t> indices) const;

  // An epoch begins that uses its samples in this order: the files' reader is told, which takes its time. An order of
  // another number of samples is none of this pipeline's.
  void announce(const EpochOrder& order) const;

  // Turns the wire form of one sample into its part of the images tensor of a view.
  // REQUIRES: wire.size() == wire_sample_bytes(), view < view_count(), image.size() == the images' sample_bytes, and
  // image is aligned for its type (the schema's offsets are, and so is every sample after the first).
  void finish(std::span<const std::uint8_t> wire, std::size_t view, std::span<std::byte> image) const;

 private:
  struct State;
  explicit NativePipeline(std::unique_ptr<const State> state);
  Result<void> produce_from_file(std::size_t index, std::uint32_t seed, std::span<std::uint8_t> wire,
                                 Workspace& workspace) const;
  Result<void> produce_from_pixels(const PixelTable& table, std::size_t index, std::uint32_t seed,
                                   std::span<std::uint8_t> wire, Workspace& workspace) const;
  // Makes the views of `image`, on which the shared operations have been.
  Result<void> write_wire(PlannedImage& image, TorchRandom& random, std::span<std::uint8_t> wire,
                          Workspace& workspace) const;
  Result<void> write_view(std::size_t view, PlannedImage& image, TorchRandom& random, std::span<std::uint8_t> wire,
                          Workspace& workspace) const;
  Result<ImageContent> read_part(const FilePart& part, Workspace& workspace) const;
  Result<PlannedImage> open(const ImageContent& content, Workspace& workspace) const;
  // `files` is asked to keep the prefix's output.
  Result<void> run_ops(const FilePart& part, const ImageContent& content, std::uint32_t seed,
                       std::span<std::uint8_t> wire, Workspace& workspace, const FileReader& files) const;
  Result<void> keep_output(const FilePart& part, const ImageContent& content, PlannedImage& image, Workspace& workspace,
                           const FileReader& files) const;
  // Tells the files' reader of a sample that was made, and tries it where the reader asks for that.
  void learn(const FilePart& part, const ImageContent& content, std::uint32_t seed, double seconds,
             Workspace& workspace) const;
  std::optional<SampleTrial> try_forms(const FilePart& part, const ImageContent& content, std::uint32_t seed,
                                       Workspace& workspace) const;

  std::unique_ptr<const State> state_;
};

}  // namespace sluice::pipeline
