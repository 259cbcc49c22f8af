// Fields that several operations have in their specification.
//
// Thread safety: pure functions. What is wrong with a field is the reader's error.
#pragma once

#include <array>
#include <vector>

#include "src/base/json_reader.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/planned_image.h"

namespace sluice::pipeline {

// Sides of an output image and the widths of borders are bounded, so that no product of sizes overflows.
inline constexpr int kMaxSidePixels = 16384;

// A list of operations, also one inside of an operation, is not longer.
inline constexpr std::size_t kMaxOps = 64;

inline constexpr const char* kUnknownField = "is not known to native pipelines";

bool fits(ImageSize size, int largest_side);

// "size": one or two side lengths, [height, width] or [side]. Never empty.
std::vector<int> read_sides(JsonReader& reader);

// The same; [side] means a square.
ImageSize read_size(JsonReader& reader);

// "interpolation", bilinear if there is none.
Interpolation read_interpolation(JsonReader& reader);

// "ratio": two rising numbers, and the optional "log_ratio" (pipeline_spec.h).
struct AspectRange {
  std::array<double, 2> ratio{};
  std::array<float, 2> log_ratio{};
};
AspectRange read_aspect(JsonReader& reader);

// "fill": a colour, black if there is none.
std::array<std::uint8_t, 3> read_fill(JsonReader& reader);

// "generation": 1 or 2, of torchvision's transforms, where they draw differently. 1 if there is none.
int read_generation(JsonReader& reader);

// "arithmetic": "image" or "tensor", of colours: Pillow's, or that of torchvision's second generation on tensors of
// bytes. Whether it is the latter; Pillow's if there is none.
bool read_is_tensor(JsonReader& reader);

// "mode" and "fill" of a border, black and constant if there are none.
void read_border(JsonReader& reader, Padding& padding);

}  // namespace sluice::pipeline
