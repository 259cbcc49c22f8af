#include "src/pipeline/ops/registry.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "src/base/json_reader.h"
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

// Reads an operation's fields; what is wrong with them is the reader's error.
using ParseOp = OpPointer (*)(JsonReader&);

constexpr std::array kOps{
    std::pair<std::string_view, ParseOp>{"decode_rgb", parse_decode_rgb},
    std::pair<std::string_view, ParseOp>{"random_resized_crop", parse_random_resized_crop},
    std::pair<std::string_view, ParseOp>{"resize", parse_resize},
    std::pair<std::string_view, ParseOp>{"center_crop", parse_center_crop},
    std::pair<std::string_view, ParseOp>{"random_crop", parse_random_crop},
    std::pair<std::string_view, ParseOp>{"pad", parse_pad},
    std::pair<std::string_view, ParseOp>{"random_horizontal_flip", parse_random_horizontal_flip},
    std::pair<std::string_view, ParseOp>{"random_vertical_flip", parse_random_vertical_flip},
    std::pair<std::string_view, ParseOp>{"random_grayscale", parse_random_grayscale},
    std::pair<std::string_view, ParseOp>{"grayscale", parse_grayscale},
    std::pair<std::string_view, ParseOp>{"color_jitter", parse_color_jitter},
    std::pair<std::string_view, ParseOp>{"random_rotation", parse_random_rotation},
    std::pair<std::string_view, ParseOp>{"augment", parse_augment},
    std::pair<std::string_view, ParseOp>{"random_augment", parse_random_augment},
    std::pair<std::string_view, ParseOp>{"auto_augment", parse_auto_augment},
    std::pair<std::string_view, ParseOp>{"random_apply", parse_random_apply},
    std::pair<std::string_view, ParseOp>{"to_tensor", parse_to_tensor},
    std::pair<std::string_view, ParseOp>{"to_float", parse_to_float},
    std::pair<std::string_view, ParseOp>{"normalize", parse_normalize},
    std::pair<std::string_view, ParseOp>{"random_erasing", parse_random_erasing},
};

// Bounds what a specification makes an executor compute between two operations.
constexpr int kMaxStepSidePixels = 4 * kMaxSidePixels;

std::string words_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBytes: return "a file's bytes";
    case ValueKind::kImage: return "an image";
    case ValueKind::kTensor: return "a tensor";
  }
  return "";
}

}  // namespace

Result<NamedOp> read_op(const nlohmann::json& fields, const std::string& path, ValueType& value) {
  JsonReader reader(fields, path);
  std::string name;
  reader.required("op", name);
  if (reader.error()) return *reader.error();
  const auto* const known = std::find_if(kOps.begin(), kOps.end(), [&](const auto& op) { return op.first == name; });
  if (known == kOps.end()) reader.fail("op", "\"" + name + "\" is not a native operation");
  if (reader.error()) return *reader.error();
  std::unique_ptr<const Op> op = known->second(reader);
  const auto* keeps = reader.find("keep_position");
  if (keeps != nullptr && !keeps->is_boolean()) reader.fail("keep_position", "must be true or false");
  if (op->takes() != value.kind)
    reader.fail("op", name + " takes " + words_of(op->takes()) + ", and here is " + words_of(value.kind));
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();
  value = op->result_of(value);
  if (value.size && !fits(*value.size, kMaxStepSidePixels)) reader.fail("op", "makes an image too large");
  if (reader.error()) return *reader.error();
  return NamedOp{known->first, std::move(op), keeps != nullptr && keeps->get<bool>()};
}

}  // namespace sluice::pipeline
