// Samples of several images: their specification, and how they are made.
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/pipeline_spec.h"
#include "src/pipeline/testing/pictures_in_memory.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;
using Fixture = testing::PicturesInMemory;

// Of operations, and of the views behind them.
Result<PipelineSpec> parse(const std::string& ops, const std::string& views) {
  json spec{{"version", 2}, {"source", {{"kind", "image_files"}, {"root", "/data"}}}};
  spec["ops"] = json::parse(ops);
  spec["views"] = json::parse(views);
  return parse_pipeline_spec(testing::specification(spec, {{"a.jpg", 0}}));
}

TEST_CASE("several views share operations on images, and each ends in its own way") {
  const auto parsed = parse(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [256]}])",
                            R"([[{"op": "random_crop", "size": [224, 192]}, {"op": "to_tensor"}],
                                [{"op": "center_crop", "size": [8, 9]}, {"op": "random_horizontal_flip", "p": 0.5}]])");
  REQUIRE(parsed.ok());
  CHECK(parsed->ops.size() == 2);
  CHECK(parsed->prefix.ops == 2);
  REQUIRE(parsed->views.size() == 2);
  CHECK(parsed->views[0].image_ops == 1);
  CHECK(parsed->views[0].output_size == ImageSize{224, 192});
  CHECK(parsed->views[0].result == ValueKind::kTensor);
  CHECK(parsed->views[1].image_ops == 2);
  CHECK(parsed->views[1].output_size == ImageSize{8, 9});
  CHECK(parsed->views[1].result == ValueKind::kImage);
}

TEST_CASE("views that no sample could have are refused by name") {
  const std::string decode = R"({"op": "decode_rgb"})";
  const std::string crop = R"({"op": "center_crop", "size": [8, 9]})";
  const auto list = [](const std::string& item, int count) {
    std::string items;
    for (int i = 0; i < count; ++i) items += (i == 0 ? "" : ", ") + item;
    return "[" + items + "]";
  };
  struct Case {
    std::string ops, views, want;
  };
  const std::string cropped = list(crop, 1);
  for (const auto& [ops, views, want] :
       {Case{decode, list(cropped, 1), "views: must be a list of 2 to 16"},
        Case{decode, list(cropped, 17), "views: must be a list of 2 to 16"},
        Case{decode, "7", "views: must be a list of 2 to 16"}, Case{decode, list(crop, 2), "views[0]: must be a list"},
        Case{decode + ", " + crop + R"(, {"op": "to_tensor"})", list(cropped, 2), "ops: must make an image, which"},
        Case{"", list(list(decode, 1), 2), "ops: must begin with decode_rgb"},
        Case{decode, "[" + cropped + ", []]", "views[1]: the images would differ in size"},
        Case{decode, "[" + cropped + ", [" + crop + ", " + decode + "]]", "views[1][1].op: decode_rgb takes a file's"},
        Case{decode, "[" + cropped + ", " + list(crop, 65) + "]", "views[1]: there are more than 64"}}) {
    const auto parsed = parse("[" + ops + "]", views);
    REQUIRE_FALSE(parsed.ok());
    CHECK_THAT(parsed.error().message(), Catch::StartsWith(want));
  }
}

constexpr const char* kTwoViews = R"({"ops": [{"op": "decode_rgb"}, {"op": "random_horizontal_flip", "p": 0.5}],
    "views": [[{"op": "random_resized_crop", "size": [32, 48], "scale": [0.08, 1], "ratio": [0.75, 1.3333333333333333]},
               {"op": "to_tensor"}, {"op": "random_erasing", "p": 0.5, "scale": [0.1, 0.2], "ratio": [0.3, 3.3], "value": [0, 0, 0]}],
              [{"op": "random_crop", "size": [8, 8]}, {"op": "grayscale", "channels": 1}]]})";

TEST_CASE("a batch of two views has the images of each, then the labels") {
  const Fixture fixture(kTwoViews);
  const NativePipeline& pipeline = *fixture.pipeline;
  CHECK(pipeline.view_count() == 2);
  CHECK(pipeline.wire_sample_bytes() == 32 * 48 * 3 + 8 + 8 * 8);
  const auto layout = pipeline.schema().layout(5);
  REQUIRE(layout.size() == 3);
  CHECK(layout[0].shape == std::vector<std::int64_t>{5, 3, 32, 48});
  CHECK(layout[0].dtype == "float32");
  CHECK(layout[1].shape == std::vector<std::int64_t>{5, 1, 8, 8});
  CHECK(layout[1].dtype == "uint8");
  CHECK(layout[2].shape == std::vector<std::int64_t>{5});
}

// The shared operations draw first, then those of each view: so the first view is that of a pipeline of its own.
TEST_CASE("the views of a sample draw one after the other") {
  Fixture both(kTwoViews);
  json ops = json::parse(kTwoViews);
  const auto alone = [&](std::size_t view) {
    json list = ops["ops"];
    list.insert(list.end(), ops["views"][view].begin(), ops["views"][view].end());
    return list.dump();
  };
  Fixture first(alone(0).c_str());
  Fixture second(alone(1).c_str());
  int as_if_alone = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    for (Fixture* fixture : {&both, &first, &second})
      REQUIRE(fixture->pipeline->produce(0, seed, fixture->pixels, fixture->workspace).ok());
    const auto start = both.pixels.begin() + static_cast<std::ptrdiff_t>(first.pixels.size());
    CHECK(std::vector(both.pixels.begin(), start) == first.pixels);
    as_if_alone += std::vector(start, both.pixels.end()) == second.pixels ? 1 : 0;
    std::vector<std::byte> image(8 * 8);
    both.pipeline->finish(both.pixels, 1, image);
    CHECK(std::memcmp(image.data(), &*start, image.size()) == 0);
  }
  CHECK(as_if_alone < 5);  // the second one goes on where the first has stopped
}

}  // namespace
}  // namespace sluice::pipeline
