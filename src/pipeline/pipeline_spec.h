// A native pipeline's specification, checked: one line of JSON, then the table of its samples
// (docs/designs/protocols.md, section 5).
//
// parse_pipeline_spec refuses everything that it does not know, down to unknown fields. Were a parameter ignored here,
// the model would silently train on other images than those of the Python pipeline.
//
// `pillow`, optional, is the major version of Pillow whose bytes are wanted (the client's own). Version 13 changed the
// order of a resize's two passes, and so the last bit of some pixels. The default is the newest known.
//
// `max_image_pixels`, optional, is the client's PIL.Image.MAX_IMAGE_PIXELS. Pillow warns of larger images and refuses
// those twice as large; here they all fail, and the client lets Pillow decide.
//
// `order`, optional, says which changes of pixels may run later than their operation's turn (late_change.h): "exact",
// the default, "program" or "relaxed".
//
// `views`, optional, are two or more lists of operations. Each makes an image of its own from what `ops` have made, and
// draws when the one before it has drawn.
//
// random_resized_crop takes one field that users do not write: `log_ratio`, two numbers, torch.log(torch.tensor(ratio))
// as the client's own torch computes it. torch's float32 logarithm is off by one unit in the last place for one
// argument in ten (among them the default 3/4), and the client knows which. Without the field the correctly rounded
// logarithm is used, and six crops in a million differ by a pixel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/file_table.h"
#include "src/pipeline/ops/op.h"
#include "src/pipeline/ops/registry.h"
#include "src/pipeline/pixel_table.h"
#include "src/pipeline/range_table.h"

namespace sluice::pipeline {

struct ImageFilesSource {
  std::string root;  // put before relative paths; may be empty
  FileTable table;
};

// Many samples in each file or object: tar shards, where the client has found the members.
struct FileRangesSource {
  RangeTable table;
};

// Images that the data set has in memory, decoded: there are no files.
struct PixelsSource {
  PixelTable table;
};

// One of a sample's images, made of what the shared operations have made.
struct View {
  std::vector<NamedOp> ops;              // images, then perhaps tensors
  std::size_t image_ops = 0;             // the first so many
  ValueKind result = ValueKind::kImage;  // or a tensor
  ImageSize output_size;                 // every sample has it
  int channels = 3;                      // of every sample; or 1: grey
};

struct PipelineSpec {
  std::variant<ImageFilesSource, FileRangesSource, PixelsSource> source;
  std::vector<NamedOp> ops;  // that all views share: bytes to image where there are files, then images
  std::vector<View> views;   // never empty; a single one has operations on tensors alone
  PassOrder pass_order = PassOrder::kHeightFirstIfShrunkMore;
  OpOrder op_order = OpOrder::kExact;
  std::optional<std::int64_t> max_image_pixels;
  Prefix prefix;
};

// InvalidArgument names the field and its form: "ops[1].scale: must be two numbers from 0 to 1".
// Where `text` stays as long as `owner` is there, a table of files or of pixels is not copied.
Result<PipelineSpec> parse_pipeline_spec(std::string_view text, std::shared_ptr<const void> owner = nullptr);

}  // namespace sluice::pipeline
