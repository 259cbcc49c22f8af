#include "src/pipeline/pipeline_spec.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

json training_spec() {
  return json::parse(R"({
    "version": 1,
    "source": {"kind": "image_files", "root": "/data", "paths": ["a.jpg", "b/c.jpg"], "labels": [0, -7]},
    "ops": [{"op": "decode_rgb"},
            {"op": "random_resized_crop", "size": [224, 192], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333],
             "interpolation": "bilinear"},
            {"op": "random_horizontal_flip", "p": 0.5},
            {"op": "to_tensor"},
            {"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}]})");
}

TEST_CASE("a training pipeline is read completely") {
  const auto spec = parse_pipeline_spec(training_spec().dump());
  REQUIRE(spec.ok());
  CHECK(spec->source.root == "/data");
  CHECK(spec->source.paths == std::vector<std::string>{"a.jpg", "b/c.jpg"});
  CHECK(spec->source.labels == std::vector<std::int64_t>{0, -7});
  CHECK(spec->output_size == ImageSize{224, 192});
  REQUIRE(spec->geometry.size() == 1);
  const auto& crop = std::get<RandomResizedCrop>(spec->geometry[0]);
  CHECK(crop.scale == std::array{0.08, 1.0});
  CHECK(crop.ratio == std::array{0.75, 1.3333333333333333});
  CHECK(spec->flip_probability == 0.5);
  CHECK(spec->to_tensor);
  REQUIRE(spec->normalize.has_value());
  CHECK(spec->normalize->std[2] == 0.225);
  CHECK(spec->pass_order == PassOrder::kHeightFirstIfShrunkMore);
}

TEST_CASE("the client's own logarithms win over ours") {
  json spec = training_spec();
  const auto ours = parse_pipeline_spec(spec.dump());
  REQUIRE(ours.ok());
  CHECK(std::get<RandomResizedCrop>(ours->geometry[0]).log_ratio[0] == -0x1.269622p-2F);  // correctly rounded
  spec["ops"][1]["log_ratio"] = {-0.28768205642700195, 0.28768211603164673};
  const auto torchs = parse_pipeline_spec(spec.dump());
  REQUIRE(torchs.ok());
  CHECK(std::get<RandomResizedCrop>(torchs->geometry[0]).log_ratio == std::array{-0x1.26962p-2F, 0x1.269624p-2F});
}

TEST_CASE("an older Pillow means the older order of passes") {
  json spec = training_spec();
  for (const auto& [version, want] : {std::pair{9, PassOrder::kWidthFirst}, std::pair{12, PassOrder::kWidthFirst},
                                      std::pair{13, PassOrder::kHeightFirstIfShrunkMore}}) {
    spec["pillow"] = version;
    REQUIRE(parse_pipeline_spec(spec.dump()).ok());
    CHECK(parse_pipeline_spec(spec.dump())->pass_order == want);
  }
}

TEST_CASE("an evaluation pipeline without tensors is bytes of one size") {
  json spec = training_spec();
  spec["ops"] = json::parse(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [256], "interpolation": "bicubic"},
                                {"op": "center_crop", "size": [224]}])");
  const auto parsed = parse_pipeline_spec(spec.dump());
  REQUIRE(parsed.ok());
  CHECK(parsed->output_size == ImageSize{224, 224});
  CHECK_FALSE(parsed->to_tensor);
  CHECK_FALSE(parsed->flip_probability.has_value());
  CHECK(std::get<Resize>(parsed->geometry[0]).shorter_side == 256);
  CHECK(std::get<Resize>(parsed->geometry[0]).interpolation == Interpolation::kBicubic);
}

// A JSON patch on training_spec() and the message that it must lead to.
struct Refusal {
  const char* patch;
  const char* want;
};

const Refusal kRefusals[] = {
    {R"([{"op": "remove", "path": "/version"}])", "version: is missing"},
    {R"([{"op": "replace", "path": "/version", "value": 2}])", "version: must be a whole number from 1 to 1"},
    {R"([{"op": "add", "path": "/prefetch", "value": 2}])", "prefetch: is not known to native pipelines"},
    {R"([{"op": "add", "path": "/pillow", "value": "13.0"}])", "pillow: must be a whole number from 8 to 99"},
    {R"([{"op": "replace", "path": "/source", "value": 3}])", "source: must be an object"},
    {R"([{"op": "replace", "path": "/source/kind", "value": "s3"}])",
     "source.kind: must be \"image_files\", not \"s3\""},
    {R"([{"op": "replace", "path": "/source/root", "value": 1}])", "source.root: must be a string"},
    {R"([{"op": "replace", "path": "/source/paths/1", "value": 5}])", "source.paths[1]: must be a string"},
    {R"([{"op": "replace", "path": "/source/paths", "value": "a"}])", "source.paths: must be a list"},
    {R"([{"op": "replace", "path": "/source/labels/0", "value": 0.5}])", "source.labels[0]: must be a whole number"},
    {R"([{"op": "remove", "path": "/source/labels/0"}])", "source.labels: has 1 elements for 2 paths"},
    {R"([{"op": "add", "path": "/source/loader", "value": "cv2"}])", "source.loader: is not known to native pipelines"},
    {R"([{"op": "replace", "path": "/ops", "value": {}}])", "ops: must be a list"},
    {R"([{"op": "replace", "path": "/ops", "value": []}])", "ops: must begin with decode_rgb"},
    {R"([{"op": "replace", "path": "/ops/0", "value": "decode_rgb"}])", "ops[0]: must be an object"},
    {R"([{"op": "remove", "path": "/ops/0/op"}])", "ops[0].op: is missing"},
    {R"([{"op": "remove", "path": "/ops/0"}])", "ops[0].op: random_resized_crop cannot come here"},
    {R"([{"op": "replace", "path": "/ops/1/op", "value": "color_jitter"}])",
     "ops[1].op: \"color_jitter\" is not a native operation"},
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
    {R"([{"op": "replace", "path": "/ops/1/interpolation", "value": "nearest"}])",
     "ops[1].interpolation: must be \"bilinear\" or \"bicubic\", not \"nearest\""},
    {R"([{"op": "replace", "path": "/ops/1", "value": {"op": "resize", "size": [256]}}])",
     "ops: the images would differ in size"},
    {R"([{"op": "remove", "path": "/ops/1"}])", "ops: the images would differ in size"},
    {R"([{"op": "add", "path": "/ops/1", "value": {"op": "resize", "size": [256, 256]}}])",
     "ops[2].op: an image can be resized only once"},
    {R"([{"op": "replace", "path": "/ops/2/p", "value": 1.5}])", "ops[2].p: must be a number from 0.0 to 1.0"},
    {R"([{"op": "replace", "path": "/ops/2/p", "value": "half"}])", "ops[2].p: must be a number from 0.0 to 1.0"},
    {R"([{"op": "add", "path": "/ops/3", "value": {"op": "random_horizontal_flip", "p": 0.5}}])",
     "ops[3].op: random_horizontal_flip cannot come here"},
    {R"([{"op": "add", "path": "/ops/3", "value": {"op": "center_crop", "size": [10]}}])",
     "ops[3].op: center_crop cannot come here"},
    {R"([{"op": "remove", "path": "/ops/3"}])", "ops[3].op: normalize needs to_tensor before it"},
    {R"([{"op": "replace", "path": "/ops/4/std", "value": [1, 0, 1]}])",
     "ops[4].std: must fit into float32 and not be zero"},
    {R"([{"op": "replace", "path": "/ops/4/mean", "value": [1]}])", "ops[4].mean: must be 3 numbers"},
    {R"([{"op": "replace", "path": "/ops/4/mean", "value": [1e300, 0, 0]}])", "ops[4].mean: must fit into float32"},
};

TEST_CASE("every refusal names the field and what it must be") {
  for (const Refusal& refusal : kRefusals) {
    CAPTURE(refusal.patch);
    const auto parsed = parse_pipeline_spec(training_spec().patch(json::parse(refusal.patch)).dump());
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(parsed.error().message(), Catch::Matchers::StartsWith(refusal.want));
  }
}

TEST_CASE("text that is not JSON, or another kind of JSON, is refused") {
  CHECK(parse_pipeline_spec("").error().message() == "specification: is not valid JSON");
  CHECK(parse_pipeline_spec("{\"version\": 1,").error().message() == "specification: is not valid JSON");
  CHECK(parse_pipeline_spec("[1]").error().message() == "specification: must be an object");
}

}  // namespace
}  // namespace sluice::pipeline
