#include "src/pipeline/pipeline_spec.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/pipeline/json_object.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

// The order in which operations may come; several geometric ones may follow each other.
enum class Stage { kStart, kDecoded, kGeometry, kFlipped, kTensor, kNormalized };

Result<ImageFilesSource> parse_source(const json& value) {
  SLUICE_TRY(JsonObject object, JsonObject::of(value, "source"));
  SLUICE_TRY(const std::string kind, object.string("kind"));
  if (kind != "image_files") return object.error("kind", "must be \"image_files\", not \"" + kind + "\"");

  ImageFilesSource source;
  SLUICE_TRY(source.root, object.string("root"));
  SLUICE_TRY(const json* paths, object.array("paths"));
  source.paths.reserve(paths->size());
  for (const json& path : *paths) {
    if (!path.is_string()) {
      return object.error("paths[" + std::to_string(source.paths.size()) + "]", "must be a string");
    }
    source.paths.push_back(path.get_ref<const std::string&>());
  }
  SLUICE_TRY(const json* labels, object.array("labels"));
  source.labels.reserve(labels->size());
  for (const json& label : *labels) {
    if (!label.is_number_integer()) {
      return object.error("labels[" + std::to_string(source.labels.size()) + "]", "must be a whole number");
    }
    source.labels.push_back(label.get<std::int64_t>());
  }
  if (source.labels.size() != source.paths.size()) {
    return object.error("labels", "has " + std::to_string(source.labels.size()) + " elements for " +
                                      std::to_string(source.paths.size()) + " paths");
  }
  SLUICE_TRY_VOID(object.refuse_unknown_fields());
  return source;
}

// One or two side lengths: [height, width] or [side].
Result<std::vector<int>> parse_sides(JsonObject& object) {
  const Error must = object.error(
      "size", "must be one or two whole numbers from 1 to " + std::to_string(kMaxSidePixels) + ": [height, width]");
  SLUICE_TRY(const json* value, object.array("size"));
  if (value->empty() || value->size() > 2) return must;
  std::vector<int> sides;
  for (const json& side : *value) {
    if (!side.is_number_integer()) return must;
    const auto pixels = side.get<std::int64_t>();
    if (pixels < 1 || pixels > kMaxSidePixels) return must;
    sides.push_back(static_cast<int>(pixels));
  }
  return sides;
}

Result<ImageSize> parse_size(JsonObject& object) {
  SLUICE_TRY(const std::vector<int> sides, parse_sides(object));
  return ImageSize{sides.front(), sides.back()};  // [side] means a square
}

Result<Interpolation> parse_interpolation(JsonObject& object) {
  if (!object.has("interpolation")) return Interpolation::kBilinear;
  SLUICE_TRY(const std::string name, object.string("interpolation"));
  if (name == "bilinear") return Interpolation::kBilinear;
  if (name == "bicubic") return Interpolation::kBicubic;
  return object.error("interpolation", "must be \"bilinear\" or \"bicubic\", not \"" + name + "\"");
}

Result<GeometricOp> parse_random_resized_crop(JsonObject& object) {
  RandomResizedCrop crop;
  SLUICE_TRY(crop.size, parse_size(object));
  SLUICE_TRY(crop.interpolation, parse_interpolation(object));
  SLUICE_TRY(const std::vector<double> scale, object.numbers("scale", 2));
  if (!(scale[0] > 0 && scale[0] <= scale[1] && scale[1] <= 1)) {
    return object.error("scale", "must be two rising numbers above 0 and not above 1");
  }
  SLUICE_TRY(const std::vector<double> ratio, object.numbers("ratio", 2));
  if (!(ratio[0] > 0 && ratio[0] <= ratio[1] && ratio[1] <= kMaxSidePixels)) {
    return object.error("ratio", "must be two rising numbers above 0");
  }
  crop.scale = {scale[0], scale[1]};
  crop.ratio = {ratio[0], ratio[1]};
  for (std::size_t i = 0; i < 2; ++i) {
    crop.log_ratio[i] = static_cast<float>(std::log(static_cast<double>(static_cast<float>(ratio[i]))));
  }
  if (object.has("log_ratio")) {
    SLUICE_TRY(const std::vector<double> log_ratio, object.numbers("log_ratio", 2));
    for (std::size_t i = 0; i < 2; ++i) {
      if (!(std::abs(log_ratio[i] - static_cast<double>(crop.log_ratio[i])) < 1e-5)) {
        return object.error("log_ratio", "must be the logarithms of ratio");
      }
      crop.log_ratio[i] = static_cast<float>(log_ratio[i]);
    }
  }
  return GeometricOp(crop);
}

Result<GeometricOp> parse_resize(JsonObject& object) {
  Resize resize;
  SLUICE_TRY(const std::vector<int> sides, parse_sides(object));
  SLUICE_TRY(resize.interpolation, parse_interpolation(object));
  if (sides.size() == 1) {
    resize.shorter_side = sides[0];
  } else {
    resize.size = {sides[0], sides[1]};
  }
  return GeometricOp(resize);
}

Result<Normalize> parse_normalize(JsonObject& object) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  Normalize normalize;
  SLUICE_TRY(const std::vector<double> mean, object.numbers("mean", 3));
  SLUICE_TRY(const std::vector<double> deviation, object.numbers("std", 3));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    if (std::abs(mean[channel]) > kLargest) return object.error("mean", "must fit into float32");
    // torchvision refuses a deviation that is zero as float32, too.
    if (static_cast<float>(std::abs(deviation[channel])) == 0.0F || std::abs(deviation[channel]) > kLargest) {
      return object.error("std", "must fit into float32 and not be zero");
    }
    normalize.mean[channel] = mean[channel];
    normalize.std[channel] = deviation[channel];
  }
  return normalize;
}

// Reads the list of operations into a PipelineSpec, keeping track of what may come next.
class OpsParser {
 public:
  explicit OpsParser(PipelineSpec& spec) : spec_(spec) {}

  Result<void> parse(const json& ops) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      SLUICE_TRY(JsonObject object, JsonObject::of(ops[i], "ops[" + std::to_string(i) + "]"));
      SLUICE_TRY(const std::string name, object.string("op"));
      SLUICE_TRY_VOID(parse_op(object, name));
      SLUICE_TRY_VOID(object.refuse_unknown_fields());
    }
    if (stage_ == Stage::kStart) return invalid_argument("ops: must begin with decode_rgb");
    if (!fixed_size_) {
      return invalid_argument(
          "ops: the images would differ in size; end the geometric operations with random_resized_crop, center_crop or "
          "a resize to [height, width]");
    }
    spec_.output_size = *fixed_size_;
    return {};
  }

 private:
  Result<void> parse_op(JsonObject& object, const std::string& name) {
    if (name == "decode_rgb") return enter(Stage::kDecoded, object, name);
    if (name == "random_resized_crop" || name == "resize" || name == "center_crop") {
      SLUICE_TRY_VOID(enter(Stage::kGeometry, object, name));
      return parse_geometry(object, name);
    }
    if (name == "random_horizontal_flip") {
      SLUICE_TRY_VOID(enter(Stage::kFlipped, object, name));
      SLUICE_TRY(spec_.flip_probability, object.number("p", 0, 1));
      return {};
    }
    if (name == "to_tensor") {
      spec_.to_tensor = true;
      return enter(Stage::kTensor, object, name);
    }
    if (name == "normalize") {
      SLUICE_TRY_VOID(enter(Stage::kNormalized, object, name));
      if (!spec_.to_tensor) return object.error("op", "normalize needs to_tensor before it");
      SLUICE_TRY(spec_.normalize, parse_normalize(object));
      return {};
    }
    return object.error("op", "\"" + name + "\" is not a native operation");
  }

  Result<void> parse_geometry(JsonObject& object, const std::string& name) {
    if (name == "center_crop") {
      SLUICE_TRY(const ImageSize size, parse_size(object));
      spec_.geometry.emplace_back(CenterCrop{size});
      fixed_size_ = size;
      return {};
    }
    if (resizes_) return object.error("op", "an image can be resized only once in a native pipeline");
    resizes_ = true;
    SLUICE_TRY(const GeometricOp op, name == "resize" ? parse_resize(object) : parse_random_resized_crop(object));
    if (const auto* crop = std::get_if<RandomResizedCrop>(&op)) fixed_size_ = crop->size;
    if (const auto* resize = std::get_if<Resize>(&op)) {
      fixed_size_ = resize->shorter_side ? std::nullopt : std::optional(resize->size);
    }
    spec_.geometry.push_back(op);
    return {};
  }

  Result<void> enter(Stage next, const JsonObject& object, const std::string& name) {
    const bool in_order = next == Stage::kGeometry ? stage_ <= next : stage_ < next;
    if (!in_order || (stage_ == Stage::kStart && next != Stage::kDecoded)) {
      return object.error("op", name +
                                    " cannot come here; the order is decode_rgb, crops and resize, "
                                    "random_horizontal_flip, to_tensor, normalize, each once");
    }
    stage_ = next;
    return {};
  }

  PipelineSpec& spec_;
  Stage stage_ = Stage::kStart;
  bool resizes_ = false;
  std::optional<ImageSize> fixed_size_;
};

}  // namespace

Result<PipelineSpec> parse_pipeline_spec(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return invalid_argument("specification: is not valid JSON");
  SLUICE_TRY(JsonObject object, JsonObject::of(document, ""));
  SLUICE_TRY(const std::int64_t version, object.integer("version", 1, 1));
  static_cast<void>(version);

  PipelineSpec spec;
  if (object.has("pillow")) {
    SLUICE_TRY(const std::int64_t pillow, object.integer("pillow", 8, 99));
    if (pillow < 13) spec.pass_order = PassOrder::kWidthFirst;
  }
  SLUICE_TRY(const json* source, object.field("source"));
  SLUICE_TRY(spec.source, parse_source(*source));
  SLUICE_TRY(const json* ops, object.array("ops"));
  SLUICE_TRY_VOID(OpsParser(spec).parse(*ops));
  SLUICE_TRY_VOID(object.refuse_unknown_fields());
  return spec;
}

}  // namespace sluice::pipeline
