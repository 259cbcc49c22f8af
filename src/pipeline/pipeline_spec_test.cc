#include "src/pipeline/pipeline_spec.h"

#include <nlohmann/json.hpp>

#include "src/base/json_reader.h"
#include "src/base/testing/catch.h"
#include "src/pipeline/ops/fields.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

json training_spec() {
  return json::parse(R"({
    "version": 2,
    "source": {"kind": "image_files", "root": "/data", "files": 2},
    "ops": [{"op": "decode_rgb"},
            {"op": "random_resized_crop", "size": [224, 192], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333],
             "interpolation": "bilinear"},
            {"op": "random_horizontal_flip", "p": 0.5},
            {"op": "to_tensor"},
            {"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}]})");
}

Result<PipelineSpec> parse(const json& spec) {
  return parse_pipeline_spec(spec.dump() + '\n' + testing::file_table({{"a.jpg", 0}, {"b/c.jpg", -7}}));
}

TEST_CASE("a training pipeline is read completely") {
  const auto spec = parse(training_spec());
  REQUIRE(spec.ok());
  const auto& source = std::get<ImageFilesSource>(spec->source);
  CHECK(source.root == "/data");
  REQUIRE(source.table.size() == 2);
  CHECK(source.table.path(1) == "b/c.jpg");
  CHECK(source.table.label(1) == -7);
  CHECK(spec->views[0].output_size == ImageSize{224, 192});
  CHECK(spec->ops.size() == 3);
  CHECK(spec->views[0].ops.size() == 2);
  CHECK(spec->views[0].result == ValueKind::kTensor);
  CHECK(spec->pass_order == PassOrder::kHeightFirstIfShrunkMore);
}

TEST_CASE("samples may be ranges of files") {
  const auto spec = parse_pipeline_spec(testing::specification(training_spec(), {{512, 100, 1, -7}, {1024, 50, 0, 3}},
                                                               {{"/data/a.tar", 2048, 11}, {"/data/b.tar", 4096, 22}}));
  REQUIRE(spec.ok());
  const auto& source = std::get<FileRangesSource>(spec->source);
  REQUIRE(source.table.size() == 2);
  CHECK(source.table.part(0).path == "/data/b.tar");
  CHECK(source.table.label(0) == -7);
}

TEST_CASE("a source of ranges is checked as strictly as one of files") {
  const auto refusal = [](const char* change) {
    json spec = training_spec();
    spec["source"] = {{"kind", "file_ranges"}, {"files", 0}, {"samples", 0}};
    spec.merge_patch(json::parse(change));
    const auto parsed = parse_pipeline_spec(spec.dump() + '\n');
    return parsed.ok() ? std::string() : parsed.error().message();
  };
  CHECK(refusal("{}").empty());
  CHECK_THAT(refusal(R"({"source": {"samples": null}})"), Catch::Contains("source.samples: is missing"));
  CHECK_THAT(refusal(R"({"source": {"samples": -1}})"), Catch::Contains("source.samples: must be a whole number"));
  CHECK_THAT(refusal(R"({"source": {"files": 4294967296}})"), Catch::Contains("source.files: must be a whole number"));
  CHECK_THAT(refusal(R"({"source": {"root": "/data"}})"), Catch::Contains("source.root"));
  CHECK_THAT(refusal(R"({"source": {"samples": 1}})"), Catch::Contains("table of ranges"));
}

json spec_of_pixels() {
  return json::parse(R"({
    "version": 2,
    "source": {"kind": "pixels", "samples": 2, "height": 2, "width": 3, "channels": 1, "axes": "hwc"},
    "ops": [{"op": "random_horizontal_flip", "p": 0.5}, {"op": "to_tensor"}]})");
}

Result<PipelineSpec> parse_of_pixels(const json& spec, std::vector<std::int64_t> labels = {7, -7}) {
  return parse_pipeline_spec(spec.dump() + '\n' + testing::pixel_table(labels, std::vector<std::uint8_t>(12)));
}

TEST_CASE("samples may be images in memory, whose size is known from the beginning") {
  const auto spec = parse_of_pixels(spec_of_pixels());
  REQUIRE(spec.ok());
  CHECK(std::get<PixelsSource>(spec->source).table.label(1) == -7);
  CHECK(spec->views[0].output_size == ImageSize{2, 3});
  CHECK(spec->views[0].channels == 1);
  CHECK(spec->prefix.fingerprint.empty());
  json no_operation = spec_of_pixels();
  no_operation["ops"] = json::array();
  REQUIRE(parse_of_pixels(no_operation).ok());
  CHECK(parse_of_pixels(no_operation)->views[0].result == ValueKind::kImage);
}

TEST_CASE("the number of channels is the source's, or what grayscale makes of it") {
  json spec = spec_of_pixels();
  spec["ops"] = json::parse(R"([{"op": "grayscale"}, {"op": "resize", "size": [4]}, {"op": "to_tensor"}])");
  CHECK(parse_of_pixels(spec)->views[0].channels == 3);
  spec["ops"][0]["channels"] = 1;
  CHECK(parse_of_pixels(spec)->views[0].channels == 1);
  json files = training_spec();
  CHECK(parse(files)->views[0].channels == 3);
  files["ops"][2] = {{"op", "grayscale"}, {"channels", 1}};
  CHECK(parse(files)->views[0].channels == 1);
  files["ops"][2]["channels"] = 2;
  CHECK(parse(files).error().message() == "ops[2].channels: must be 1 or 3");
  files["ops"][2] = json::parse(R"({"op": "random_apply", "p": 0.5, "ops": [{"op": "grayscale", "channels": 1}]})");
  CHECK_FALSE(parse(files).ok());
}

TEST_CASE("a source of pixels is checked as strictly as one of files") {
  const auto refusal = [](const char* change) {
    json spec = spec_of_pixels();
    spec.merge_patch(json::parse(change));
    const auto parsed = parse_of_pixels(spec);
    return parsed.ok() ? std::string() : parsed.error().message();
  };
  CHECK(refusal("{}").empty());
  const std::pair<const char*, const char*> kWrong[] = {
      {R"({"source": {"samples": null}})", "source.samples: is missing"},
      {R"({"source": {"samples": 4294967296}})", "source.samples: must be a whole number"},
      {R"({"source": {"height": 0}})", "source.height: must be a whole number from 1 to 16384"},
      {R"({"source": {"width": 16385}})", "source.width: must be a whole number from 1 to 16384"},
      {R"({"source": {"channels": 4}})", "source.channels: must be a whole number from 1 to 3"},
      {R"({"source": {"channels": 2}})", "source.channels: must be 1 or 3"},
      {R"({"source": {"axes": "hwd"}})", "the axes \"hwd\" are not h, w and c"},
      {R"({"source": {"root": "/data"}})", "source.root"},
      {R"({"source": {"samples": 3}})", "the table of pixels has 28 bytes"},
      {R"({"ops": [{"op": "decode_rgb"}]})", "decode_rgb takes a file's bytes, and here is an image"},
      {R"({"ops": [{"op": "random_crop", "size": [4, 4]}, {"op": "normalize", "mean": [0, 0, 0], "std": [1, 1, 1]}]})",
       "normalize takes a tensor, and here is an image"},
  };
  for (const auto& [change, want] : kWrong) {
    CAPTURE(change);
    CHECK_THAT(refusal(change), Catch::Contains(want));
  }
}

TEST_CASE("a source of objects says what to ask their store with") {
  const auto parsed = [](const char* environment) {
    json spec = training_spec();
    spec["source"] = {
        {"kind", "object_ranges"}, {"files", 1}, {"samples", 1}, {"environment", json::parse(environment)}};
    return parse_pipeline_spec(spec.dump() + '\n' +
                               testing::object_table({{0, 5, 0, 3}}, {{"https://h/k", 9, 1, "\"e\""}}));
  };
  const auto spec = parsed(R"({"AWS_REGION": "eu-1"})");
  REQUIRE(spec.ok());
  CHECK(std::get<FileRangesSource>(spec->source).table.part(0).object->variable("AWS_REGION") == "eu-1");
  for (const char* wrong : {"null", "[]", R"({"AWS_SECRET_ACCESS_KEY": 17})"}) {
    CAPTURE(wrong);
    CHECK(parsed(wrong).error().message() == "source.environment: must be an object of strings, 64 at most");
  }
}

TEST_CASE("the client's own logarithms win over the correctly rounded ones") {
  json fields = training_spec()["ops"][1];
  const auto log_ratio_of = [](const json& op) {
    JsonReader reader(op, "");
    const AspectRange aspect = read_aspect(reader);
    REQUIRE_FALSE(reader.error());
    return aspect.log_ratio;
  };
  CHECK(log_ratio_of(fields)[0] == -0x1.269622p-2F);  // correctly rounded
  fields["log_ratio"] = {-0.28768205642700195, 0.28768211603164673};
  CHECK(log_ratio_of(fields) == std::array{-0x1.26962p-2F, 0x1.269624p-2F});
}

TEST_CASE("an older Pillow means the older order of passes") {
  json spec = training_spec();
  for (const auto& [version, want] : {std::pair{9, PassOrder::kWidthFirst}, std::pair{12, PassOrder::kWidthFirst},
                                      std::pair{13, PassOrder::kHeightFirstIfShrunkMore}}) {
    spec["pillow"] = version;
    REQUIRE(parse(spec).ok());
    CHECK(parse(spec)->pass_order == want);
  }
}

TEST_CASE("Pillow's limit of pixels is optional") {
  json spec = training_spec();
  CHECK(!parse(spec)->max_image_pixels);
  spec["max_image_pixels"] = 89'478'485;
  CHECK(parse(spec)->max_image_pixels == 89'478'485);
}

TEST_CASE("an evaluation pipeline without tensors is bytes of one size") {
  json spec = training_spec();
  spec["ops"] = json::parse(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [256], "interpolation": "bicubic"},
                                {"op": "center_crop", "size": [224]}])");
  const auto parsed = parse(spec);
  REQUIRE(parsed.ok());
  CHECK(parsed->views[0].output_size == ImageSize{224, 224});
  CHECK(parsed->views[0].result == ValueKind::kImage);
  CHECK(parsed->ops.size() == 3);
}

// A JSON patch on training_spec() and the message that it must lead to.
struct Refusal {
  const char* patch;
  const char* want;
};

const Refusal kRefusals[] = {
    {R"([{"op": "remove", "path": "/version"}])", "version: is missing"},
    {R"([{"op": "replace", "path": "/version", "value": 1}])", "version: must be a whole number from 2 to 2"},
    {R"([{"op": "add", "path": "/prefetch", "value": 2}])", "prefetch: is not known to native pipelines"},
    {R"([{"op": "add", "path": "/pillow", "value": "13.0"}])", "pillow: must be a whole number from 8 to 99"},
    {R"([{"op": "add", "path": "/max_image_pixels", "value": 0}])",
     "max_image_pixels: must be a whole number from 1 to 9007199254740992"},
    {R"([{"op": "add", "path": "/order", "value": "any"}])", "order: must be \"program\", \"exact\" or \"relaxed\""},
    {R"([{"op": "add", "path": "/order", "value": 3}])", "order: must be a string"},
    {R"([{"op": "add", "path": "/ops/1/keep_position", "value": 1}])", "ops[1].keep_position: must be true or false"},
    {R"([{"op": "replace", "path": "/source", "value": 3}])", "source: must be an object"},
    {R"([{"op": "replace", "path": "/source/kind", "value": "s3"}])",
     "source.kind: must be \"image_files\", \"file_ranges\", \"object_ranges\" or \"pixels\", not \"s3\""},
    {R"([{"op": "replace", "path": "/source/root", "value": 1}])", "source.root: must be a string"},
    {R"([{"op": "remove", "path": "/source/files"}])", "source.files: is missing"},
    {R"([{"op": "replace", "path": "/source/files", "value": -1}])", "source.files: must be a whole number from 0"},
    {R"([{"op": "replace", "path": "/source/files", "value": 3}])", "the file table has"},
    {R"([{"op": "add", "path": "/source/loader", "value": "cv2"}])", "source.loader: is not known to native pipelines"},
    {R"([{"op": "replace", "path": "/ops", "value": {}}])", "ops: must be a list"},
    {R"([{"op": "replace", "path": "/ops", "value": []}])", "ops: must begin with decode_rgb"},
    {R"([{"op": "replace", "path": "/ops/0", "value": "decode_rgb"}])", "ops[0]: must be an object"},
    {R"([{"op": "remove", "path": "/ops/0/op"}])", "ops[0].op: is missing"},
    {R"([{"op": "remove", "path": "/ops/0"}])",
     "ops[0].op: random_resized_crop takes an image, and here is a file's bytes"},
    {R"([{"op": "replace", "path": "/ops/1/op", "value": "solarize"}])",
     "ops[1].op: \"solarize\" is not a native operation"},
    {R"([{"op": "add", "path": "/ops/1/antialias", "value": false}])",
     "ops[1].antialias: is not known to native pipelines"},
    {R"([{"op": "replace", "path": "/ops/1/size", "value": 224}])", "ops[1].size: must be a list"},
    {R"([{"op": "replace", "path": "/ops/1/size", "value": [224, 0]}])",
     "ops[1].size: must be one or two whole numbers"},
    {R"([{"op": "replace", "path": "/ops/1/size", "value": [99999]}])",
     "ops[1].size: must be one or two whole numbers"},
    {R"([{"op": "replace", "path": "/ops/1/size", "value": [1, 2, 3]}])",
     "ops[1].size: must be one or two whole numbers"},
    {R"([{"op": "replace", "path": "/ops/1/scale", "value": [0.5, 0.2]}])", "ops[1].scale: must be two rising numbers"},
    {R"([{"op": "replace", "path": "/ops/1/scale", "value": [0, 1]}])", "ops[1].scale: must be two rising numbers"},
    {R"([{"op": "replace", "path": "/ops/1/scale", "value": [0.5]}])", "ops[1].scale: must be 2 numbers"},
    {R"([{"op": "replace", "path": "/ops/1/scale", "value": ["a", "b"]}])", "ops[1].scale: must be 2 numbers"},
    {R"([{"op": "replace", "path": "/ops/1/ratio", "value": [-1, 1]}])", "ops[1].ratio: must be two rising numbers"},
    {R"([{"op": "add", "path": "/ops/1/log_ratio", "value": [0, 0.287682]}])",
     "ops[1].log_ratio: must be the logarithms of ratio"},
    {R"([{"op": "replace", "path": "/ops/1/interpolation", "value": "lanczos"}])",
     "ops[1].interpolation: must be \"bilinear\", \"bicubic\", \"nearest\", \"tensor_bilinear\" or \"tensor_bicubic\", "
     "not \"lanczos\""},
    {R"([{"op": "replace", "path": "/ops/1", "value": {"op": "resize", "size": [256]}}])",
     "ops: the images would differ in size"},
    {R"([{"op": "remove", "path": "/ops/1"}])", "ops: the images would differ in size"},
    {R"([{"op": "replace", "path": "/ops/2/p", "value": 1.5}])", "ops[2].p: must be a number from 0.0 to 1.0"},
    {R"([{"op": "replace", "path": "/ops/2/p", "value": "half"}])", "ops[2].p: must be a number from 0.0 to 1.0"},
    {R"([{"op": "add", "path": "/ops/4", "value": {"op": "center_crop", "size": [10]}}])",
     "ops[4].op: center_crop takes an image, and here is a tensor"},
    {R"([{"op": "remove", "path": "/ops/3"}])", "ops[3].op: normalize takes a tensor, and here is an image"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "resize", "size": [9, 9], "max_size": 20}}])",
     "ops[2].max_size: goes with one side only"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "resize", "size": [9], "max_size": 9}}])",
     "ops[2].max_size: must be a whole number from 10 to 32768"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "pad", "padding": [1, 2, 3, -4]}}])",
     "ops[2].padding: must be 4 whole numbers from 0 to 16384"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "pad", "padding": [1, 2, 3]}}])",
     "ops[2].padding: must be 4 numbers"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "pad", "padding": [1, 2, 3, 4], "mode": "wrap"}}])",
     "ops[2].mode: must be \"constant\", \"edge\""},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "pad", "padding": [1, 2, 3, 4], "fill": [0, 0, 256]}}])",
     "ops[2].fill: must be 3 whole numbers from 0 to 255"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "pad", "padding": [16384, 0, 1, 0]}}])",
     "ops: the images would have sides above 16384"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_crop", "size": [9], "pad_if_needed": 1}}])",
     "ops[2].pad_if_needed: must be true or false"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_crop", "size": [9], "generation": 3}}])",
     "ops[2].generation: must be a whole number from 1 to 2"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_vertical_flip"}}])", "ops[2].p: is missing"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_grayscale", "p": 2}}])",
     "ops[2].p: must be a number from 0.0 to 1.0"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "grayscale", "p": 1}}])",
     "ops[2].p: is not known to native pipelines"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "color_jitter", "contrast": [2, 1]}}])",
     "ops[2].contrast: must be two rising numbers from 0"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "color_jitter", "hue": [0, 0.6]}}])",
     "ops[2].hue: must be two rising numbers from -0.5 to 0.5"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "color_jitter", "hue": [0, 0.1], "arithmetic": "float"}}])",
     "ops[2].arithmetic: must be \"image\" or \"tensor\""},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "tensor_sharpness", "magnitudes": [-1.5]}}])",
     "ops[2].magnitudes: must be 1 to 256 numbers that tensor_sharpness takes"},
    {R"([{"op": "add", "path": "/ops/4", "value": {"op": "random_erasing", "p": 1, "scale": [0, 1.5], "ratio": [0.3, 3.3], "value": [0, 0, 0]}}])",
     "ops[4].scale: must be two rising numbers from 0 to 1"},
    {R"([{"op": "add", "path": "/ops/4", "value": {"op": "random_erasing", "p": 1, "scale": [0, 1], "ratio": [0.3, 3.3], "value": [0, 0, 1e39]}}])",
     "ops[4].value: must fit into float32"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_erasing", "p": 1, "scale": [0, 1], "ratio": [0.3, 3.3], "value": [0, 0, 0]}}])",
     "ops[2].op: random_erasing takes a tensor, and here is an image"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_rotation", "degrees": [9, -9]}}])",
     "ops[2].degrees: must be two rising numbers"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_rotation", "degrees": [0, 1], "interpolation": "bicubic"}}])",
     "ops[2].interpolation: must be \"nearest\" or \"bilinear\" here"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "sharpen"}}])",
     "ops[2].name: \"sharpen\" is not a native augmentation"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "posterize"}}])",
     "ops[2].magnitudes: must be 1 to 256 numbers that posterize takes"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "posterize", "magnitudes": [8.5]}}])",
     "ops[2].magnitudes: must be 1 to 256 numbers that posterize takes"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "rotate", "magnitudes": [1, 2]}}])",
     "ops[2].magnitudes: must be one number, without a sign to draw"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "augment", "name": "rotate", "magnitudes": [1], "signed": true}}])",
     "ops[2].magnitudes: must be one number, without a sign to draw"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_augment", "choices": []}}])",
     "ops[2].choices: must be a list of 1 to 64"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_augment", "choices": [{"name": "posterize", "magnitudes": [4], "signed": true}]}}])",
     "ops[2].choices[0]: magnitudes: must be 1 to 256 numbers that posterize takes"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_augment", "choices": [{"name": "invert", "signed": 1}]}}])",
     "ops[2].choices[0]: signed: must be true or false"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_augment", "choices": [{"name": "invert", "p": 1}]}}])",
     "ops[2].choices[0]: p: is not known to native pipelines"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "auto_augment", "policies": [[{"name": "invert", "p": 1}]]}}])",
     "ops[2].policies[0]: must be two changes"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "auto_augment", "policies": [[{"name": "invert", "p": 1}, {"name": "equalize"}]]}}])",
     "ops[2].policies[0][1]: p: is missing"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": []}}])",
     "ops[2].ops: must be a list of 1 to 64"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": [{"op": "solarise"}]}}])",
     "ops[2].ops[0]: op: \"solarise\" is not a native operation"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": [{"op": "random_apply", "p": 1, "ops": [{"op": "grayscale"}]}]}}])",
     "ops[2].ops[0]: must not have operations of its own"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": [{"op": "to_tensor"}]}}])",
     "ops[2].ops[0]: must make an image"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": [{"op": "pad", "padding": [0, 1, 0, 0]}]}}])",
     "ops[2].ops: must keep the size of the image"},
    {R"([{"op": "add", "path": "/ops/2", "value": {"op": "random_apply", "p": 1, "ops": [{"op": "resize", "size": [97]}]}}])",
     "ops[2].ops: must keep the size of the image"},
    {R"([{"op": "replace", "path": "/ops/4/std", "value": [1, 0, 1]}])",
     "ops[4].std: must fit into float32 and not be zero"},
    {R"([{"op": "replace", "path": "/ops/4/mean", "value": [1]}])", "ops[4].mean: must be 3 numbers"},
    {R"([{"op": "replace", "path": "/ops/4/mean", "value": [1e300, 0, 0]}])", "ops[4].mean: must fit into float32"},
};

TEST_CASE("every refusal names the field and what it must be") {
  for (const Refusal& refusal : kRefusals) {
    CAPTURE(refusal.patch);
    const auto parsed = parse(training_spec().patch(json::parse(refusal.patch)));
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(parsed.error().message(), Catch::Matchers::StartsWith(refusal.want));
  }
}

TEST_CASE("too many operations are refused") {
  json spec = training_spec();
  for (int i = 0; i < 60; ++i) spec["ops"].insert(spec["ops"].begin() + 2, {{"op", "grayscale"}});
  CHECK(parse(spec).error().message() == "ops: there are more than 64");
}

TEST_CASE("a specification without its table is refused") {
  const auto parsed = parse_pipeline_spec(training_spec().dump());
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().message() == "the file table is cut off");
}

TEST_CASE("text that is not JSON, or another kind of JSON, is refused") {
  CHECK(parse_pipeline_spec("").error().message() == "specification: is not valid JSON");
  CHECK(parse_pipeline_spec("{\"version\": 1,").error().message() == "specification: is not valid JSON");
  CHECK(parse_pipeline_spec("[1]").error().message() == "specification: must be an object");
}

}  // namespace
}  // namespace sluice::pipeline
