#include "src/pipeline/pipeline_spec.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/json_reader.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxFiles = std::numeric_limits<std::uint32_t>::max();

// Bytes behind the specification; null: nothing keeps them.
struct Table {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

Result<void> read_image_files(JsonReader& reader, const Table& table, ImageFilesSource& source) {
  std::int64_t files = 0;
  reader.required("root", source.root);
  reader.required("files", files, std::int64_t{0}, kMaxFiles);
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();
  const auto count = static_cast<std::uint64_t>(files);
  SLUICE_TRY(source.table, table.owner ? FileTable::parse(table.bytes, count, table.owner)
                                       : FileTable::parse(std::string(table.bytes), count));
  return {};
}

Result<void> read_file_ranges(JsonReader& reader, std::string_view table, FileRangesSource& source) {
  std::int64_t files = 0, samples = 0;
  reader.required("files", files, std::int64_t{0}, kMaxFiles);
  reader.required("samples", samples, std::int64_t{0}, kMaxFiles);
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();
  SLUICE_TRY(source.table, RangeTable::parse(std::string(table), static_cast<std::uint64_t>(samples),
                                             static_cast<std::uint64_t>(files)));
  return {};
}

Result<void> read_pixels(JsonReader& reader, const Table& table, PixelsSource& source) {
  std::int64_t samples = 0;
  PixelShape shape;
  reader.required("samples", samples, std::int64_t{0}, kMaxFiles);
  reader.required("height", shape.size.height, 1, kMaxSidePixels);
  reader.required("width", shape.size.width, 1, kMaxSidePixels);
  reader.required("channels", shape.channels, 1, 3);
  reader.required("axes", shape.axes);
  if (shape.channels == 2) reader.fail("channels", "must be 1 or 3");
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();
  shape.samples = static_cast<std::uint64_t>(samples);
  SLUICE_TRY(source.table, table.owner ? PixelTable::parse(table.bytes, shape, table.owner)
                                       : PixelTable::parse(std::string(table.bytes), shape));
  return {};
}

constexpr std::size_t kVariablesMax = 64;

Result<void> read_environment(JsonReader& reader, ObjectEnvironment& environment) {
  const json* variables = reader.find("environment");
  const auto is_text = [](const json& value) { return value.is_string(); };
  if (variables == nullptr || !variables->is_object() || variables->size() > kVariablesMax ||
      !std::all_of(variables->begin(), variables->end(), is_text)) {
    reader.fail("environment", "must be an object of strings, " + std::to_string(kVariablesMax) + " at most");
    return *reader.error();
  }
  for (const auto& [name, value] : variables->items()) environment[name] = value.get<std::string>();
  return {};
}

Result<void> read_object_ranges(JsonReader& reader, std::string_view table, FileRangesSource& source) {
  std::int64_t files = 0, samples = 0;
  reader.required("files", files, std::int64_t{0}, kMaxFiles);
  reader.required("samples", samples, std::int64_t{0}, kMaxFiles);
  const auto environment = std::make_shared<ObjectEnvironment>();
  SLUICE_TRY_VOID(read_environment(reader, *environment));
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();
  SLUICE_TRY(source.table, RangeTable::parse_with_objects(std::string(table), static_cast<std::uint64_t>(samples),
                                                          static_cast<std::uint64_t>(files), environment));
  return {};
}

Result<void> read_source(const json& object, const Table& table, PipelineSpec& spec) {
  JsonReader reader(object, "source");
  std::string kind;
  reader.required("kind", kind);
  if (kind == "image_files") return read_image_files(reader, table, spec.source.emplace<ImageFilesSource>());
  if (kind == "file_ranges") return read_file_ranges(reader, table.bytes, spec.source.emplace<FileRangesSource>());
  if (kind == "object_ranges") return read_object_ranges(reader, table.bytes, spec.source.emplace<FileRangesSource>());
  if (kind == "pixels") return read_pixels(reader, table, spec.source.emplace<PixelsSource>());
  reader.fail("kind",
              "must be \"image_files\", \"file_ranges\", \"object_ranges\" or \"pixels\", not \"" + kind + "\"");
  return *reader.error();
}

// What the first operation gets.
ValueType type_of(const PipelineSpec& spec) {
  const auto* pixels = std::get_if<PixelsSource>(&spec.source);
  if (pixels == nullptr) return {};
  return {ValueKind::kImage, pixels->table.image_size(), pixels->table.channels()};
}

// Reads a list of operations behind those that made `value`. `path`: of the list.
Result<std::vector<NamedOp>> read_list(const json& list, const std::string& path, ValueType& value) {
  if (!list.is_array()) return invalid_argument(path + ": must be a list");
  if (list.size() > kMaxOps) return invalid_argument(path + ": there are more than " + std::to_string(kMaxOps));
  std::vector<NamedOp> ops;
  for (std::size_t i = 0; i < list.size(); ++i) {
    SLUICE_TRY(ops.emplace_back(), read_op(list[i], path + "[" + std::to_string(i) + "]", value));
  }
  if (value.kind == ValueKind::kBytes) return invalid_argument(path + ": must begin with decode_rgb");
  return ops;
}

// The view that ends as `value`. `path`: of the list of operations that ends it.
Result<View> view_of(const ValueType& value, const std::string& path) {
  if (!value.size) {
    return invalid_argument(path +
                            ": the images would differ in size; end the geometric operations with random_resized_crop, "
                            "a crop or a resize to [height, width]");
  }
  if (!fits(*value.size, kMaxSidePixels))
    return invalid_argument(path + ": the images would have sides above " + std::to_string(kMaxSidePixels));
  View view;
  view.result = value.kind;
  view.output_size = *value.size;
  view.channels = value.channels;
  return view;
}

// How many operations, the first so many, make images of what `before` is.
std::size_t image_ops_of(const std::vector<NamedOp>& ops, ValueType before) {
  const auto makes_tensor = [&](const NamedOp& named) {
    before = named.op->result_of(before);
    return before.kind == ValueKind::kTensor;
  };
  return static_cast<std::size_t>(std::ranges::find_if(ops, makes_tensor) - ops.begin());
}

// Of a specification without views: what its operations do to tensors is the single view's.
Result<void> read_single(const json& list, PipelineSpec& spec) {
  const ValueType source = type_of(spec);
  ValueType value = source;
  SLUICE_TRY(spec.ops, read_list(list, "ops", value));
  SLUICE_TRY(View view, view_of(value, "ops"));
  const auto tensor_ops = spec.ops.begin() + static_cast<std::ptrdiff_t>(image_ops_of(spec.ops, source));
  std::move(tensor_ops, spec.ops.end(), std::back_inserter(view.ops));
  spec.ops.erase(tensor_ops, spec.ops.end());
  spec.views.push_back(std::move(view));
  return {};
}

constexpr std::size_t kMaxViews = 16;

Result<void> read_views(const json& shared, const json& views, PipelineSpec& spec) {
  if (!views.is_array() || views.size() < 2 || views.size() > kMaxViews)
    return invalid_argument("views: must be a list of 2 to " + std::to_string(kMaxViews));
  ValueType value = type_of(spec);
  SLUICE_TRY(spec.ops, read_list(shared, "ops", value));
  if (value.kind != ValueKind::kImage) return invalid_argument("ops: must make an image, which all views share");
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::string path = "views[" + std::to_string(i) + "]";
    ValueType result = value;
    SLUICE_TRY(std::vector<NamedOp> ops, read_list(views[i], path, result));
    SLUICE_TRY(View view, view_of(result, path));
    view.image_ops = image_ops_of(ops, value);
    view.ops = std::move(ops);
    spec.views.push_back(std::move(view));
  }
  return {};
}

// Raised whenever native pipelines make another byte of the same file by the same operations.
constexpr int kOutputVersion = 1;

// Decoding alone is not worth keeping: pixels have five to seven times the bytes of a photograph.
Prefix prefix_of(const json& list, const PipelineSpec& spec) {
  if (std::holds_alternative<PixelsSource>(spec.source)) return {};  // nothing is read, so that nothing is kept
  Prefix prefix;
  for (const NamedOp& named : spec.ops) {
    if (named.op->draws()) break;
    ++prefix.ops;
  }
  if (prefix.ops < 2) return {};
  const json ops(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(prefix.ops));
  json all{{"ops", ops}, {"version", kOutputVersion}, {"pass_order", static_cast<int>(spec.pass_order)}};
  if (spec.op_order == OpOrder::kRelaxed) all["order"] = "relaxed";  // exactly, an order changes nothing
  if (spec.max_image_pixels) all["max_image_pixels"] = *spec.max_image_pixels;
  // Keys of objects come sorted, so that the order of the specification's fields does not matter.
  prefix.fingerprint = all.dump(-1, ' ', false, json::error_handler_t::replace);
  return prefix;
}

OpOrder read_order(JsonReader& reader) {
  if (reader.find("order") == nullptr) return OpOrder::kExact;
  std::string order;
  reader.required("order", order);
  if (order == "program") return OpOrder::kProgram;
  if (order == "relaxed") return OpOrder::kRelaxed;
  if (order != "exact") reader.fail("order", "must be \"program\", \"exact\" or \"relaxed\"");
  return OpOrder::kExact;
}

// What a user writes who wants no limit in effect.
constexpr std::int64_t kMaxImagePixelsMax = std::int64_t{1} << 53;

}  // namespace

Result<PipelineSpec> parse_pipeline_spec(std::string_view text, std::shared_ptr<const void> owner) {
  const std::size_t line_end = std::min(text.find('\n'), text.size());
  const json document = json::parse(text.substr(0, line_end), nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return invalid_argument("specification: is not valid JSON");
  if (!document.is_object()) return invalid_argument("specification: must be an object");
  JsonReader reader(document, "");
  int version = 0;
  reader.required("version", version, 2, 2);

  PipelineSpec spec;
  if (reader.find("pillow") != nullptr) {
    int pillow = 0;
    reader.required("pillow", pillow, 8, 99);
    if (pillow < 13) spec.pass_order = PassOrder::kWidthFirst;
  }
  if (reader.find("max_image_pixels") != nullptr)
    reader.required("max_image_pixels", spec.max_image_pixels.emplace(), std::int64_t{1}, kMaxImagePixelsMax);
  spec.op_order = read_order(reader);
  const json* source = reader.find("source");
  const json* ops = reader.find("ops");
  const json* views = reader.find("views");
  if (source == nullptr) reader.fail("source", "is missing");
  if (ops == nullptr || !ops->is_array()) reader.fail("ops", ops == nullptr ? "is missing" : "must be a list");
  reader.refuse_unknown_fields(kUnknownField);
  if (reader.error()) return *reader.error();

  const Table table{text.substr(std::min(line_end + 1, text.size())), std::move(owner)};
  SLUICE_TRY_VOID(read_source(*source, table, spec));
  SLUICE_TRY_VOID(views == nullptr ? read_single(*ops, spec) : read_views(*ops, *views, spec));
  spec.prefix = prefix_of(*ops, spec);
  return spec;
}

}  // namespace sluice::pipeline
