#include "src/pipeline/native_pipeline.h"

#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;

// Files in memory; a missing one is a missing file, and one path stands for a machine without memory.
class MemoryFiles final : public FileReader {
 public:
  std::map<std::string, std::vector<std::uint8_t>> files;

  Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const override {
    if (path.ends_with("out-of-memory.jpg")) throw std::bad_alloc();
    const auto found = files.find(path);
    if (found == files.end()) return not_found("open " + path);
    bytes = found->second;
    return {};
  }
};

const char* const kTensorOps = R"([{"op": "decode_rgb"},
    {"op": "random_resized_crop", "size": [32, 48], "scale": [0.08, 1], "ratio": [0.75, 1.3333333333333333]},
    {"op": "random_horizontal_flip", "p": 0.5}, {"op": "to_tensor"},
    {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])";
const char* const kByteOps = R"([{"op": "decode_rgb"}, {"op": "center_crop", "size": [20, 30]}])";

class Fixture {
 public:
  explicit Fixture(const char* ops) {
    const std::vector<std::string> paths{"good.jpg",    "/abs/small.jpg",    "truncated.jpg", "picture.png",
                                         "missing.jpg", "out-of-memory.jpg", "good.jpg"};
    files->files["/data/good.jpg"] = encode_picture({90, 120}, {});
    files->files["/abs/small.jpg"] = encode_picture({9, 11}, {});
    files->files["/data/truncated.jpg"] = encode_picture({90, 120}, {});
    files->files["/data/truncated.jpg"].resize(1500);
    files->files["/data/picture.png"] = {0x89, 'P', 'N', 'G', 0};
    nlohmann::json spec;
    spec["version"] = 1;
    spec["source"] = {{"kind", "image_files"}, {"root", "/data"}, {"paths", paths}, {"labels", {3, 1, 4, 1, 5, 9, -2}}};
    spec["ops"] = nlohmann::json::parse(ops);
    auto parsed = NativePipeline::parse(spec.dump(), files);
    REQUIRE(parsed.ok());
    pipeline = *parsed;
    pixels.resize(pipeline->wire_sample_bytes());
  }

  Error error_of(std::int64_t index) {
    const auto made = pipeline->produce(index, 1, pixels, workspace);
    REQUIRE_FALSE(made.ok());
    return made.error();
  }

  std::shared_ptr<MemoryFiles> files = std::make_shared<MemoryFiles>();
  std::shared_ptr<const NativePipeline> pipeline;
  Workspace workspace;
  std::vector<std::uint8_t> pixels;
};

TEST_CASE("a float pipeline's batch is images, then labels, both aligned") {
  Fixture fixture(kTensorOps);
  const NativePipeline& pipeline = *fixture.pipeline;
  CHECK(pipeline.sample_count() == 7);
  CHECK(pipeline.wire_sample_bytes() == 32 * 48 * 3);
  CHECK(pipeline.final_sample_bytes() == 32 * 48 * 3 * 4);
  const auto layout = pipeline.batch_layout(5);
  REQUIRE(layout.size() == 2);
  CHECK(layout[0].dtype == "float32");
  CHECK(layout[0].shape == std::vector<std::int64_t>{5, 3, 32, 48});
  CHECK(layout[0].offset == 0);
  CHECK(layout[0].nbytes == 5 * pipeline.final_sample_bytes());
  CHECK(layout[1].dtype == "int64");
  CHECK(layout[1].shape == std::vector<std::int64_t>{5});
  CHECK(layout[1].offset % 64 == 0);
  CHECK(layout[1].offset >= layout[0].nbytes);
  CHECK(layout[1].nbytes == 40);
  CHECK(pipeline.batch_bytes(5) == layout[1].offset + layout[1].nbytes);
}

TEST_CASE("a byte pipeline's labels are aligned behind images of an odd size") {
  Fixture fixture(kByteOps);
  const auto layout = fixture.pipeline->batch_layout(3);
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
  CHECK(fixture.error_of(1).to_string() ==
        "InvalidArgument: /abs/small.jpg: center_crop to 20x30 would have to pad an image of 9x11; resize first, or "
        "use the "
        "Python pipeline");
  CHECK(fixture.error_of(2).to_string() == "DataLoss: /data/truncated.jpg: the file is truncated");
  CHECK(fixture.error_of(3).to_string() ==
        "InvalidArgument: /data/picture.png: is a PNG file; native pipelines decode JPEG only, so this data set needs "
        "the "
        "Python pipeline");
  CHECK(fixture.error_of(4).to_string() == "NotFound: open /data/missing.jpg");
  CHECK(fixture.error_of(5).to_string() ==
        "ResourceExhausted: /data/out-of-memory.jpg: not enough memory to decode it");
  CHECK(fixture.error_of(7).to_string() == "InvalidArgument: sample 7 does not exist; the data set has 7");
  CHECK(fixture.error_of(-1).code() == ErrorCode::kInvalidArgument);
  CHECK(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
}

TEST_CASE("finishing writes the sample's planes and nothing around them") {
  Fixture fixture(kTensorOps);
  REQUIRE(fixture.pipeline->produce(0, 1, fixture.pixels, fixture.workspace).ok());
  const std::size_t bytes = fixture.pipeline->final_sample_bytes();
  std::vector<float> batch(3 * bytes / sizeof(float), -99.0F);
  fixture.pipeline->finish(fixture.pixels, std::as_writable_bytes(std::span(batch)).subspan(bytes, bytes));
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
  const StageSeconds seconds = fixture.workspace.take_stage_seconds();
  CHECK(seconds.decode > 0);
  CHECK(seconds.resample > 0);
  CHECK(fixture.workspace.take_stage_seconds().decode == 0);
}

TEST_CASE("a specification that cannot be parsed makes no pipeline") {
  const auto parsed = NativePipeline::parse("{}");
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().message() == "version: is missing");
}

}  // namespace
}  // namespace sluice::pipeline
