// Samples that a reader asks to try: each form is measured, and neither samples nor costs show it.
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/pipeline_files.h"
#include "src/pipeline/testing/pictures_in_memory.h"
#include "src/pipeline/testing/png_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::PicturesInMemory;

constexpr const char* kRandomCrop =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [40]}, {"op": "random_crop", "size": [32, 32]},
    {"op": "color_jitter", "brightness": [0.5, 1.5]}])";

// Says yes to every trial.
class EagerFiles final : public PipelineFiles {
 public:
  explicit EagerFiles(std::shared_ptr<const FileReader> files) : files_(std::move(files)) {}

  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    return files_->read(part, bytes);
  }
  Result<ImageContent> read_image(const FilePart& part, const Prefix& /*prefix*/,
                                  std::vector<std::uint8_t>& bytes) const override {
    SLUICE_TRY_VOID(read(part, bytes));
    constexpr double kKeepingSeconds = -1;  // so that they are not lost among those of the reading
    return ImageContent{FileForm::kFile, std::nullopt, is_of_source, 0.5, bytes.size(), kKeepingSeconds};
  }
  Result<FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }
  bool note(const ImageContent& content, double seconds) const override {
    CHECK(content.is_of_source == is_of_source);
    CHECK(content.reading_seconds >= 1);
    CHECK(content.making_seconds > 0);
    CHECK(seconds > 0);
    ++notes;
    return tries;
  }
  void note_trial(const std::optional<SampleTrial>& trial, double seconds) const override {
    CHECK(seconds > 0);
    trials.push_back(trial);
  }
  Result<double> read_source(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    if (!source_answers) return not_found(part.path);
    SLUICE_TRY_VOID(read(part, bytes));
    return 0.25;
  }

  bool tries = true;
  bool is_of_source = true;
  bool source_answers = true;
  mutable int notes = 0;
  mutable std::vector<std::optional<SampleTrial>> trials;

 private:
  std::shared_ptr<const FileReader> files_;
};

// Gives its pipeline the eager reader.
class Files final : public FileReader {
 public:
  explicit Files(std::shared_ptr<const FileReader> files) : files_(std::move(files)) {}
  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    return files_->read(part, bytes);
  }
  Result<FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }
  std::unique_ptr<const PipelineFiles> for_pipeline(std::size_t samples) const override {
    CHECK(samples == 7);
    auto eager = std::make_unique<EagerFiles>(files_);
    own = eager.get();
    return eager;
  }

  mutable EagerFiles* own = nullptr;

 private:
  std::shared_ptr<const FileReader> files_;
};

struct TriedPictures : PicturesInMemory {
  explicit TriedPictures(const char* ops) : PicturesInMemory(ops), reader(std::make_shared<Files>(files)) {
    auto parsed = NativePipeline::parse(specification, reader);
    REQUIRE(parsed.ok());
    tried = *parsed;
  }
  // Makes sample 0 both ways, and compares.
  const std::optional<SampleTrial>& trial() {
    REQUIRE(pipeline->produce(0, 7, pixels, workspace).ok());
    std::vector<std::uint8_t> again(pixels.size());
    REQUIRE(tried->produce(0, 7, again, workspace).ok());
    CHECK(again == pixels);
    REQUIRE(reader->own->trials.size() == 1);
    return reader->own->trials[0];
  }

  std::shared_ptr<Files> reader;
  std::shared_ptr<const NativePipeline> tried;
};

TEST_CASE("a trial has what each form weighs and takes, and the sample is the same") {
  TriedPictures fixture(kRandomCrop);
  const auto& trial = fixture.trial();
  REQUIRE(trial.has_value());
  CHECK(trial->file.bytes == fixture.files->files["/data/good.jpg"]);
  CHECK(trial->file.seconds > 0);
  CHECK(trial->wait_seconds == 0.5);
  REQUIRE(trial->output.has_value());
  CHECK(trial->output->bytes.size() == 40 * 53 * 3 + 8);  // of 90x120
  CHECK(trial->output->seconds > 0);
  CHECK(trial->coefficients.has_value() == (fast_jpeg_kernels() != nullptr));
  if (trial->coefficients) {
    JpegDecoder decoder;
    CHECK(decoder.open_coefficients(trial->coefficients->bytes).ok());
    CHECK(trial->coefficients->seconds > 0);
  }
}

TEST_CASE("a pipeline that begins at random has no output to try, and a PNG has no coefficients") {
  CHECK_FALSE(TriedPictures(testing::kTensorOps).trial()->output.has_value());
  TriedPictures png(kRandomCrop);
  png.files->files["/data/good.jpg"] = testing::encode_png({90, 120}, {});
  const auto& trial = png.trial();
  REQUIRE(trial.has_value());
  CHECK_FALSE(trial->coefficients.has_value());
  CHECK(trial->output.has_value());
}

TEST_CASE("what was not read from its source is read from there for the trial") {
  TriedPictures fixture(kRandomCrop);
  fixture.reader->own->is_of_source = false;
  CHECK(fixture.trial()->wait_seconds == 0.25);
  TriedPictures gone(kRandomCrop);
  gone.reader->own->is_of_source = gone.reader->own->source_answers = false;
  CHECK_FALSE(gone.trial().has_value());
}

TEST_CASE("what trials cost is no cost of the pipeline's operations") {
  TriedPictures fixture(kRandomCrop);
  fixture.trial();
  fixture.workspace.take_costs();
  REQUIRE(fixture.tried->produce(0, 7, fixture.pixels, fixture.workspace).ok());
  const OpCosts tried = fixture.workspace.take_costs();
  fixture.reader->own->tries = false;
  REQUIRE(fixture.tried->produce(0, 7, fixture.pixels, fixture.workspace).ok());
  const OpCosts plain = fixture.workspace.take_costs();
  CHECK(tried.read.bytes == plain.read.bytes);
  CHECK(tried.decode.bytes == plain.decode.bytes);
  CHECK(tried.resample.bytes == plain.resample.bytes);
  CHECK(fixture.reader->own->trials.size() == 2);
  CHECK(fixture.reader->own->notes == 3);
}

TEST_CASE("a sample that fails is neither noted nor tried") {
  TriedPictures fixture(kRandomCrop);
  CHECK_FALSE(fixture.tried->produce(2, 7, fixture.pixels, fixture.workspace).ok());
  CHECK(fixture.reader->own->notes == 0);
}

}  // namespace
}  // namespace sluice::pipeline
