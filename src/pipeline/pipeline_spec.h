// A native pipeline's specification, checked. The JSON form is in docs/designs/first-slice.md, section 5.
//
// parse_pipeline_spec refuses everything that it does not know, down to unknown fields: a parameter that were ignored
// here would silently train on other images than the Python pipeline would have given.
//
// `pillow`, optional, is the major version of Pillow whose bytes are wanted (the client's own): version 13 changed the
// order of a resize's two passes, and so the last bit of some pixels. The default is the newest known.
//
// random_resized_crop takes one field that users do not write: `log_ratio`, two numbers, torch.log(torch.tensor(ratio))
// as the client's own torch computes it. torch's float32 logarithm is off by one unit in the last place for one
// argument in ten (among them the default 3/4), and the client knows which; without the field the correctly rounded
// logarithm is used and six crops in a million differ by a pixel.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

struct ImageFilesSource {
  std::string root;  // put before relative paths; may be empty
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;  // one per path
};

struct Normalize {
  std::array<double, 3> mean{};
  std::array<double, 3> std{};  // not zero
};

struct PipelineSpec {
  ImageFilesSource source;
  std::vector<GeometricOp> geometry;       // in order; at most one resizes
  std::optional<double> flip_probability;  // in [0, 1]
  bool to_tensor = false;                  // float32 in [0, 1]; else uint8
  std::optional<Normalize> normalize;      // only with to_tensor
  PassOrder pass_order = PassOrder::kHeightFirstIfShrunkMore;
  ImageSize output_size;  // every sample has it
};

// Sides of an output image are bounded, so that no product of sizes overflows.
inline constexpr int kMaxSidePixels = 16384;

// InvalidArgument names the field and what it must be: "ops[1].scale: must be two numbers from 0 to 1".
Result<PipelineSpec> parse_pipeline_spec(std::string_view json);

}  // namespace sluice::pipeline
