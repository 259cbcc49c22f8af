// Samples that are no whole file: a range of one, or another form of its image.
#include <nlohmann/json.hpp>

#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/testing/pictures_in_memory.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::kTensorOps;
using testing::MemoryFiles;
using Fixture = testing::PicturesInMemory;

TEST_CASE("a picture within a larger file gives what it gives as a file of its own") {
  Fixture alone(kTensorOps);
  const auto picture = alone.files->files["/data/good.jpg"];
  const auto files = std::make_shared<MemoryFiles>();
  auto& shard = files->files["/data/shard.tar"];
  shard.assign(512, 9);
  shard.insert(shard.end(), picture.begin(), picture.end());
  shard.resize(shard.size() + 700, 9);
  const auto bytes = static_cast<std::uint32_t>(picture.size());
  nlohmann::json spec = {{"version", 2}, {"ops", nlohmann::json::parse(kTensorOps)}};
  const auto pipeline = NativePipeline::parse(
      testing::specification(spec, {{512, bytes, 0, 5}, {512, 1500, 0, 6}}, {{"/data/shard.tar", shard.size(), 1}}),
      files);
  REQUIRE(pipeline.ok());
  CHECK((*pipeline)->sample_count() == 2);
  CHECK((*pipeline)->label(1) == 6);
  std::vector<std::uint8_t> pixels(alone.pixels.size());
  REQUIRE((*pipeline)->produce(0, 7, pixels, alone.workspace).ok());
  REQUIRE(alone.pipeline->produce(0, 7, alone.pixels, alone.workspace).ok());
  CHECK(pixels == alone.pixels);
  const auto truncated = (*pipeline)->produce(1, 7, pixels, alone.workspace);
  REQUIRE_FALSE(truncated.ok());
  CHECK_THAT(truncated.error().message(), Catch::StartsWith("/data/shard.tar at 512: "));
}

// Whose images come as coefficients, or as what is taken for them.
class CoefficientFiles final : public FileReader {
 public:
  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    return files->read(part, bytes);
  }
  Result<ImageContent> read_image(const FilePart& part, const Prefix& prefix,
                                  std::vector<std::uint8_t>& bytes) const override {
    bytes = coefficients;
    if (!files->files.contains(part.path)) return FileReader::read_image(part, prefix, bytes);
    return ImageContent{FileForm::kCoefficients, {}};
  }
  Result<FileIdentity> identify(const std::string& path) const override { return files->identify(path); }

  std::shared_ptr<MemoryFiles> files;
  std::vector<std::uint8_t> coefficients;
};

TEST_CASE("a sample is the same from coefficients, and from the file where they are damaged") {
  Fixture fixture(kTensorOps);
  REQUIRE(fixture.pipeline->produce(0, 7, fixture.pixels, fixture.workspace).ok());
  auto reader = std::make_shared<CoefficientFiles>();
  reader->files = fixture.files;
  JpegDecoder decoder(available_jpeg_kernels().back());
  REQUIRE(decoder.open(fixture.files->files["/data/good.jpg"]).ok());
  REQUIRE(decoder.transcode(1 << 20, reader->coefficients));
  fixture.files->files["/data/good.jpg"] = encode_picture({90, 120}, {.components = 1});  // read where it should not be
  const auto wanted = fixture.pixels;
  const auto produce = [&](std::int64_t index) {
    const auto pipeline = NativePipeline::parse(fixture.specification, reader);
    REQUIRE(pipeline.ok());
    return (*pipeline)->produce(index, 7, fixture.pixels, fixture.workspace);
  };
  if (fast_jpeg_kernels() != nullptr) CHECK((produce(0).ok() && fixture.pixels == wanted));
  fixture.files->files["/data/good.jpg"] = encode_picture({90, 120}, {});
  for (const std::size_t at : {reader->coefficients.size() / 2, std::size_t{0}}) {
    reader->coefficients.resize(at);
    CHECK((produce(0).ok() && fixture.pixels == wanted));
  }
  CHECK_THAT(produce(2).error().message(), Catch::EndsWith("truncated.jpg: the file is truncated"));
}

}  // namespace
}  // namespace sluice::pipeline
