#include "src/pipeline/native_pipeline.h"

#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/testing/jpeg_encoder.h"
#include "src/pipeline/testing/pictures_in_memory.h"
#include "src/pipeline/testing/specification.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::kByteOps;
using testing::kTensorOps;
using testing::MemoryFiles;
using Fixture = testing::PicturesInMemory;

TEST_CASE("a float pipeline's batch is images, then labels, both aligned") {
  Fixture fixture(kTensorOps);
  const NativePipeline& pipeline = *fixture.pipeline;
  CHECK(pipeline.sample_count() == 7);
  CHECK(pipeline.wire_sample_bytes() == 32 * 48 * 3);
  CHECK(pipeline.schema().fields()[0].sample_bytes == 32 * 48 * 3 * 4);
  const auto layout = pipeline.schema().layout(5);
  REQUIRE(layout.size() == 2);
  CHECK(layout[0].dtype == "float32");
  CHECK(layout[0].shape == std::vector<std::int64_t>{5, 3, 32, 48});
  CHECK(layout[0].offset == 0);
  CHECK(layout[0].nbytes == 5 * pipeline.schema().fields()[0].sample_bytes);
  CHECK(layout[1].dtype == "int64");
  CHECK(layout[1].shape == std::vector<std::int64_t>{5});
  CHECK(layout[1].offset % 64 == 0);
  CHECK(layout[1].offset >= layout[0].nbytes);
  CHECK(layout[1].nbytes == 40);
  CHECK(pipeline.schema().batch_bytes(5) == layout[1].offset + layout[1].nbytes);
}

TEST_CASE("a byte pipeline's labels are aligned behind images of an odd size") {
  Fixture fixture(kByteOps);
  const auto layout = fixture.pipeline->schema().layout(3);
  CHECK(layout[0].dtype == "uint8");
  CHECK(layout[0].nbytes == 3 * 20 * 30 * 3);
  CHECK(layout[1].offset == 5440);  // 5400, rounded up to a multiple of 64
}

TEST_CASE("labels are the specification's") {
  Fixture fixture(kByteOps);
  CHECK(fixture.pipeline->label(0) == 3);
  CHECK(fixture.pipeline->label(6) == -2);
}

TEST_CASE("the seed decides the sample, and nothing else does") {
  Fixture fixture(kTensorOps);
  const auto sample = [&](std::int64_t index, std::uint32_t seed) {
    REQUIRE(fixture.pipeline->produce(index, seed, fixture.pixels, fixture.workspace).ok());
    return fixture.pixels;
  };
  const auto first = sample(0, 7);
  CHECK(sample(0, 8) != first);
  CHECK(sample(1, 7) != first);
  CHECK(sample(6, 7) == first);  // the same file
  CHECK(sample(0, 7) == first);
}

TEST_CASE("many threads make the same samples as one") {
  Fixture fixture(kTensorOps);
  constexpr std::uint32_t kSamples = 40;
  std::vector<std::vector<std::uint8_t>> want;
  for (std::uint32_t seed = 0; seed < kSamples; ++seed) {
    REQUIRE(fixture.pipeline->produce(seed % 2, seed, fixture.pixels, fixture.workspace).ok());
    want.push_back(fixture.pixels);
  }
  std::vector<int> different(4, 0);
  {
    std::vector<std::jthread> threads;
    threads.reserve(different.size());
    for (int& count : different) {
      threads.emplace_back([&] {
        Workspace workspace;
        std::vector<std::uint8_t> pixels(fixture.pipeline->wire_sample_bytes());
        for (std::uint32_t seed = 0; seed < kSamples; ++seed) {
          const bool made = fixture.pipeline->produce(seed % 2, seed, pixels, workspace).ok();
          count += made && pixels == want[seed] ? 0 : 1;
        }
      });
    }
  }
  CHECK(different == std::vector<int>(4, 0));
}

TEST_CASE("every failing sample names its file and leaves the workspace usable") {
  Fixture fixture(kByteOps);
  CHECK(fixture.error_of(2).to_string() == "DataLoss: /data/truncated.jpg: the file is truncated");
  CHECK(fixture.error_of(3).to_string() ==
        "InvalidArgument: /data/picture.gif: is a GIF file; native pipelines decode JPEG, PNG and WebP only, so its "
        "batch needs the Python pipeline");
  CHECK(fixture.error_of(4).to_string() == "NotFound: open /data/missing.jpg");
  CHECK(fixture.error_of(5).to_string() ==
        "ResourceExhausted: /data/out-of-memory.jpg: not enough memory to decode it");
  CHECK(fixture.error_of(7).to_string() == "InvalidArgument: sample 7 does not exist; the data set has 7");
  CHECK(fixture.error_of(-1).code() == ErrorCode::kInvalidArgument);
  CHECK(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
}

TEST_CASE("a centre crop of a smaller image has a black border, the odd pixel behind") {
  Fixture fixture(kByteOps);
  REQUIRE(fixture.pipeline->produce(1, 1, fixture.pixels, fixture.workspace).ok());  // 9x11 in 20x30
  const auto is_black = [&](std::size_t y, std::size_t x) {
    const std::uint8_t* pixel = &fixture.pixels[(y * 30 + x) * 3];
    return pixel[0] + pixel[1] + pixel[2] == 0;
  };
  for (std::size_t y = 0; y < 20; ++y) {
    for (std::size_t x = 0; x < 30; ++x) {
      CAPTURE(y, x);
      if (y < 5 || y >= 14 || x < 9 || x >= 20) CHECK(is_black(y, x));
    }
  }
  CHECK_FALSE(is_black(9, 15));
}

TEST_CASE("a crop larger than its image fails and names it") {
  Fixture fixture(R"([{"op": "decode_rgb"}, {"op": "random_crop", "size": [20, 30]}])");
  CHECK(fixture.error_of(1).to_string() ==
        "InvalidArgument: /abs/small.jpg: random_crop is larger than an image of 9x11");
}

TEST_CASE("only_rgb refuses a grey image by name, and changes no other") {
  Fixture fixture(R"([{"op": "decode_rgb", "only_rgb": true}, {"op": "center_crop", "size": [20, 30]}])");
  Fixture converting(kByteOps);
  fixture.files->files["/abs/small.jpg"] = encode_picture({9, 11}, {.components = 1});
  CHECK(fixture.error_of(1).to_string() ==
        "InvalidArgument: /abs/small.jpg: is not RGB, and nothing converts it; its batch needs the Python pipeline");
  REQUIRE(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
  REQUIRE(converting.pipeline->produce(0, 1, converting.pixels, converting.workspace).ok());
  CHECK(fixture.pixels == converting.pixels);
}

TEST_CASE("an operation that makes a huge image fails before it takes the memory") {
  Fixture fixture(R"([{"op": "decode_rgb"}, {"op": "pad", "padding": [16000, 16000, 16000, 16000]},
                      {"op": "center_crop", "size": [20, 30]}])");
  CHECK(fixture.error_of(0).message().find("more than 178956970") != std::string::npos);
}

// One of the augmentations, with one to three magnitudes.
nlohmann::json any_augmentation(TorchRandom& random) {
  const char* const names[] = {"identity",   "shear_x",   "shear_y",  "translate_x",  "translate_y",
                               "rotate",     "color",     "contrast", "sharpness",    "tensor_sharpness",
                               "brightness", "posterize", "invert",   "autocontrast", "tensor_autocontrast",
                               "solarize",   "equalize"};
  const std::string name = names[random.randint(0, std::size(names))];
  nlohmann::json augmentation = {{"name", name}, {"magnitudes", nlohmann::json::array()}};
  for (auto count = random.randint(1, 4); count > 0; --count) {
    const bool is_whole = name == "posterize" || name.starts_with("translate");
    const auto whole = random.randint(1, name == "posterize" ? 9 : 60);
    augmentation["magnitudes"].push_back(is_whole ? nlohmann::json(whole) : nlohmann::json(random.uniform(0, 200)));
    if (!is_whole && (name.starts_with("shear") || random.chance(0.5))) augmentation["magnitudes"].back() = 0.3;
    if (name == "identity" || name == "invert" || name == "equalize" || name.ends_with("autocontrast"))
      augmentation["magnitudes"].back() = 0;
  }
  if (name != "posterize") augmentation["signed"] = random.chance(0.5);
  return augmentation;
}

// An operation of any name with fields that mostly fit it.
nlohmann::json any_op(TorchRandom& random) {
  const char* const names[] = {"random_resized_crop",
                               "resize",
                               "center_crop",
                               "random_crop",
                               "pad",
                               "color_jitter",
                               "random_horizontal_flip",
                               "random_vertical_flip",
                               "random_grayscale",
                               "random_rotation",
                               "random_augment",
                               "auto_augment",
                               "random_apply",
                               "grayscale",
                               "to_tensor",
                               "to_float",
                               "normalize",
                               "random_erasing"};
  const std::string name = names[random.randint(0, std::size(names))];
  const auto number = [&] { return random.randint(0, 20) == 0 ? random.randint(-1, 20000) : random.randint(1, 90); };
  const auto range = [&](float low, float high) { return nlohmann::json::array({low, random.uniform(low, high)}); };
  nlohmann::json op = {{"op", name}};
  if (name == "random_erasing" || name.ends_with("_flip") || name == "random_grayscale" || name == "random_apply")
    op["p"] = random.rand();
  if (name.ends_with("crop") || name == "resize") op["size"] = {number(), number()};
  if (name == "resize" && random.chance(0.5)) op["size"] = nlohmann::json::array({number()});
  if (name == "random_crop") op["pad_if_needed"] = random.chance(0.8);
  if (name.ends_with("resized_crop") || name == "random_erasing") op["scale"] = range(0.01F, 1.0F);
  if (name.ends_with("resized_crop") || name == "random_erasing") op["ratio"] = range(0.1F, 9.0F);
  if (name == "random_erasing") op["value"] = {1, 2, 3};
  if (name == "pad") op["padding"] = {number(), number(), number(), number()};
  if (name == "pad") op["mode"] = random.chance(0.5) ? "reflect" : "symmetric";
  if (name == "color_jitter") op["hue"] = op["contrast"] = op["saturation"] = range(0.0F, 0.5F);
  if (name == "color_jitter" || name.ends_with("grayscale")) op["arithmetic"] = random.chance(0.5) ? "tensor" : "image";
  if (name == "random_rotation") op["degrees"] = range(-400.0F, 400.0F);
  if (name == "random_augment") op["choices"] = {any_augmentation(random), any_augmentation(random)};
  if (name == "random_apply") op["ops"] = {any_op(random), any_op(random)};
  if (name == "auto_augment") {
    for (auto count = random.randint(1, 4); count > 0; --count) {
      nlohmann::json step = any_augmentation(random);
      step["p"] = random.rand();
      step["magnitudes"].get_ref<nlohmann::json::array_t&>().resize(1);
      op["policies"].push_back(nlohmann::json::array({step, step}));
    }
  }
  if (name == "random_rotation" || name.ends_with("_augment")) {
    op["interpolation"] = random.chance(0.5) ? "nearest" : "bilinear";
    op["fill"] = {1, 2, 3};
  }
  if (name.ends_with("_augment")) op["generation"] = random.chance(0.5) ? 1 : 2;
  if (name == "normalize") op["mean"] = op["std"] = {0.5, 0.25, 2};
  return op;
}

TEST_CASE("any list of operations is refused, or makes every sample as in program order, or says why not") {
  MemoryFiles memory;
  memory.files["/good.jpg"] = encode_picture({31, 44}, {});
  memory.files["/thin.jpg"] = encode_picture({1, 90}, {});
  const auto files = std::make_shared<MemoryFiles>(memory);
  int accepted = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    TorchRandom random(seed);
    nlohmann::json spec = {{"version", 2}, {"source", {{"kind", "image_files"}, {"root", ""}}}};
    spec["ops"] = nlohmann::json::array({{{"op", "decode_rgb"}}});
    for (auto count = random.randint(1, 7); count > 0; --count) spec["ops"].push_back(any_op(random));
    if (random.chance(0.3)) {  // the last one is done by each of two views
      const nlohmann::json last = spec["ops"].back();
      spec["ops"].erase(spec["ops"].size() - 1);
      spec["views"] = {{last}, {any_op(random), last}};
    }
    const auto parse = [&] {
      return NativePipeline::parse(testing::specification(spec, {{"/good.jpg", 0}, {"/thin.jpg", 1}}), files);
    };
    const auto pipeline = parse();
    if (!pipeline || (*pipeline)->wire_sample_bytes() > 1'000'000) continue;
    spec["order"] = "program";
    const auto in_program_order = parse();
    REQUIRE(in_program_order.ok());
    ++accepted;
    Workspace workspace;
    std::vector<std::uint8_t> wire((*pipeline)->wire_sample_bytes());
    std::vector<std::uint8_t> wanted(wire.size());
    for (const std::int64_t index : {0, 1, 0}) {
      const auto made = (*pipeline)->produce(index, seed, wire, workspace);
      for (std::size_t view = 0; made.ok() && view < (*pipeline)->view_count(); ++view) {
        std::vector<std::byte> tensor((*pipeline)->schema().fields()[view].sample_bytes);
        (*pipeline)->finish(wire, view, tensor);
      }
      if ((*in_program_order)->produce(index, seed, wanted, workspace).ok()) {
        CHECK(made.ok());
        CHECK(wire == wanted);
      }
      if (!made) CHECK(made.error().code() == ErrorCode::kInvalidArgument);
    }
  }
  CHECK(accepted > 100);
}

TEST_CASE("finishing writes the sample's planes and nothing around them") {
  Fixture fixture(kTensorOps);
  REQUIRE(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
  const std::size_t bytes = fixture.pipeline->schema().fields()[0].sample_bytes;
  std::vector<float> batch(3 * bytes / sizeof(float), -99.0F);
  fixture.pipeline->finish(fixture.pixels, 0, std::as_writable_bytes(std::span(batch)).subspan(bytes, bytes));
  const std::size_t plane = 32 * 48;
  CHECK(batch[3 * plane - 1] == -99.0F);
  CHECK(batch[6 * plane] == -99.0F);
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const float want = (static_cast<float>(fixture.pixels[3 * i + channel]) / 255.0F - 0.5F) / 0.25F;
      CHECK(batch[(3 + channel) * plane + i] == want);
    }
  }
}

TEST_CASE("the workspace says where the time went, once") {
  Fixture fixture(kTensorOps);
  REQUIRE(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
  const OpCosts costs = fixture.workspace.take_costs();
  CHECK(costs.decode.seconds > 0);
  CHECK(costs.resample.seconds > 0);
  CHECK(costs.ops.empty());
  CHECK(fixture.workspace.take_costs().decode.seconds == 0);
}

TEST_CASE("waiting for a file is time blocked, and no CPU of any stage") {
  Fixture fixture(kTensorOps);
  fixture.files->takes = std::chrono::milliseconds(200);
  for (const std::int64_t index : {0, 1})
    REQUIRE(fixture.pipeline->produce(index, 1, fixture.pixels, fixture.workspace).ok());
  const OpCosts costs = fixture.workspace.take_costs();
  CHECK(costs.blocked_seconds >= 0.39);
  CHECK(costs.read.seconds < 0.1);
  CHECK(fixture.workspace.take_costs().blocked_seconds == 0);
}

TEST_CASE("operations that change pixels are counted by name, with the bytes that each step makes") {
  Fixture fixture(R"([{"op": "decode_rgb"}, {"op": "center_crop", "size": [20, 30]},
                      {"op": "random_vertical_flip", "p": 1}, {"op": "color_jitter", "hue": [0.1, 0.2]},
                      {"op": "grayscale"}, {"op": "pad", "padding": [1, 0, 1, 0]}])");
  REQUIRE(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
  const OpCosts costs = fixture.workspace.take_costs();
  CHECK(costs.read.bytes == fixture.files->files["/data/good.jpg"].size());
  CHECK(costs.decode.bytes == 20 * 30 * 3);
  CHECK(costs.resample.bytes == 20 * 30 * 3 + 20 * 32 * 3);  // the crop, and the copy to the wire form
  REQUIRE(costs.ops.size() == 3);
  CHECK(costs.ops.at("color_jitter").bytes == 20 * 30 * 3);
  CHECK(costs.ops.at("color_jitter").seconds > 0);
  CHECK(costs.ops.at("grayscale").bytes == 20 * 30 * 3);
  CHECK(costs.ops.at("pad").bytes == 20 * 32 * 3);
}

TEST_CASE("a relaxed order is another one, but for operations that keep their position") {
  const auto made = [](const char* order, const char* keeps) {
    const auto spec =
        nlohmann::json{{"version", 2}, {"order", order}, {"source", {{"kind", "image_files"}, {"root", ""}}}};
    auto with_ops = spec;
    with_ops["ops"] = nlohmann::json::parse(
        R"([{"op": "decode_rgb"}, {"op": "color_jitter", "contrast": [0.2, 0.3], "keep_position": )" +
        std::string(keeps) +
        R"(}, {"op": "random_resized_crop", "size": [20, 20], "scale": [0.1, 0.5], "ratio": [0.75, 1.3]}])");
    const auto files = std::make_shared<MemoryFiles>();
    files->files["/good.jpg"] = encode_picture({90, 120}, {});
    const auto pipeline = NativePipeline::parse(testing::specification(with_ops, {{"/good.jpg", 0}}), files);
    REQUIRE(pipeline.ok());
    Workspace workspace;
    std::vector<std::uint8_t> wire((*pipeline)->wire_sample_bytes());
    REQUIRE((*pipeline)->produce(0, 1, wire, workspace).ok());
    return wire;
  };
  CHECK(made("relaxed", "false") != made("program", "false"));
  CHECK(made("relaxed", "true") == made("program", "false"));
  CHECK(made("exact", "false") == made("program", "false"));
}

// Two grey images of 2x3 in memory.
std::shared_ptr<const NativePipeline> pipeline_of_pixels(const char* ops) {
  const auto spec = nlohmann::json{
      {"version", 2},
      {"max_image_pixels", 5},  // Pillow's limit is one of files
      {"source", {{"kind", "pixels"}, {"samples", 2}, {"height", 2}, {"width", 3}, {"channels", 1}, {"axes", "hwc"}}},
      {"ops", nlohmann::json::parse(ops)}};
  const auto parsed = NativePipeline::parse(
      spec.dump() + '\n' + testing::pixel_table({5, -6}, {0, 1, 2, 3, 4, 5, 60, 51, 102, 153, 204, 255}));
  REQUIRE(parsed.ok());
  return *parsed;
}

TEST_CASE("an image in memory is made without a file, and a grey one travels as one channel") {
  const auto pipeline = pipeline_of_pixels(R"([{"op": "random_horizontal_flip", "p": 1}, {"op": "to_tensor"}])");
  CHECK(pipeline->sample_count() == 2);
  CHECK(pipeline->label(1) == -6);
  REQUIRE(pipeline->wire_sample_bytes() == 6);
  const auto layout = pipeline->schema().layout(2);
  CHECK(layout[0].shape == std::vector<std::int64_t>{2, 1, 2, 3});
  CHECK(layout[0].nbytes == 2 * 6 * sizeof(float));
  Workspace workspace;
  std::vector<std::uint8_t> wire(6);
  REQUIRE(pipeline->produce(1, 1, wire, workspace).ok());
  CHECK(wire == std::vector<std::uint8_t>{102, 51, 60, 255, 204, 153});
  std::vector<float> tensor(6);
  pipeline->finish(wire, 0, std::as_writable_bytes(std::span(tensor)));
  CHECK(tensor == std::vector<float>{0.4F, 0.2F, 60 / 255.0F, 1.0F, 0.8F, 0.6F});
  const OpCosts costs = workspace.take_costs();
  CHECK(costs.read.bytes == 2 * 3 * 3);
  CHECK(costs.decode.bytes == 0);
  CHECK(pipeline->read_ahead(std::vector<std::int64_t>{0, 1}) == nullptr);
}

TEST_CASE("an image in memory that fails is named by its number") {
  const auto pipeline = pipeline_of_pixels(R"([{"op": "random_crop", "size": [3, 3]}])");
  Workspace workspace;
  std::vector<std::uint8_t> wire(pipeline->wire_sample_bytes());
  CHECK(pipeline->produce(1, 1, wire, workspace).error().to_string() ==
        "InvalidArgument: image 1: random_crop is larger than an image of 2x3");
  CHECK_FALSE(pipeline->produce(2, 1, wire, workspace).ok());
}

TEST_CASE("a specification that cannot be parsed makes no pipeline") {
  const auto parsed = NativePipeline::parse("{}");
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().message() == "version: is missing");
}

}  // namespace
}  // namespace sluice::pipeline
