// Samples from the kept output of their prefix: the same bytes, and the same draws, as from the file.
#include "src/pipeline/pipeline_spec.h"
#include "src/pipeline/testing/pictures_in_memory.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::PicturesInMemory;

constexpr const char* kValidation =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [40]}, {"op": "center_crop", "size": [32, 32]},
    {"op": "to_tensor"}, {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])";
constexpr const char* kRandomCrop =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [40]}, {"op": "random_crop", "size": [32, 32]},
    {"op": "random_horizontal_flip", "p": 0.5}, {"op": "color_jitter", "brightness": [0.5, 1.5]}, {"op": "to_tensor"}])";
constexpr const char* kErased =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [24, 24]}, {"op": "pad", "padding": [2, 2, 2, 2]},
    {"op": "to_tensor"}, {"op": "random_erasing", "p": 0.5, "scale": [0.02, 0.33], "ratio": [0.3, 3.3], "value": [0, 0, 0]}])";

// Files in memory that keep outputs as a cache does.
class KeptOutputs final : public FileReader {
 public:
  explicit KeptOutputs(std::shared_ptr<testing::MemoryFiles> files) : files_(std::move(files)) {}

  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    ++reads;
    return files_->read(part, bytes);
  }
  Result<ImageContent> read_image(const FilePart& part, const Prefix& prefix,
                                  std::vector<std::uint8_t>& bytes) const override {
    const auto found = outputs.find(part.path);
    if (found != outputs.end()) {
      bytes = found->second;
      return ImageContent{FileForm::kOutput, {}};
    }
    SLUICE_TRY_VOID(read(part, bytes));
    if (prefix.fingerprint.empty()) return ImageContent{};
    return ImageContent{FileForm::kFile, FileIdentity{}};
  }
  bool has_room_for_output(const FilePart&, const Prefix&, const FileIdentity&, std::size_t bytes) const override {
    return bytes <= room;
  }
  void keep_output(const FilePart& part, const Prefix&, const FileIdentity&,
                   std::span<const std::uint8_t> output) const override {
    outputs[part.path].assign(output.begin(), output.end());
  }
  Result<FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  mutable int reads = 0;
  mutable std::map<std::string, std::vector<std::uint8_t>> outputs;
  std::size_t room = std::size_t{1} << 20;

 private:
  std::shared_ptr<testing::MemoryFiles> files_;
};

struct PrefixPictures : PicturesInMemory {
  explicit PrefixPictures(const char* ops, const char* order = "exact")
      : PicturesInMemory(ops, order), kept(std::make_shared<KeptOutputs>(files)) {
    auto parsed = NativePipeline::parse(specification, kept);
    REQUIRE(parsed.ok());
    keeping = *parsed;
  }

  // Whether the sample is what it is without kept outputs: the same bytes, or the same error.
  bool is_same(std::int64_t index, std::uint32_t seed) {
    std::vector<std::uint8_t> wanted(pixels.size());
    const auto expected = pipeline->produce(index, seed, wanted, workspace);
    const auto made = keeping->produce(index, seed, pixels, workspace);
    if (!expected.ok()) return !made.ok() && made.error().message() == expected.error().message();
    return made.ok() && pixels == wanted;
  }

  std::shared_ptr<KeptOutputs> kept;
  std::shared_ptr<const NativePipeline> keeping;
};

TEST_CASE("samples are the same from kept outputs, which are read in place of the file") {
  for (const char* ops : {kValidation, kRandomCrop, kErased}) {
    PrefixPictures fixture(ops);
    CHECK(fixture.is_same(0, 1));
    CHECK(fixture.kept->outputs.size() == 1);
    for (std::uint32_t seed = 1; seed < 20; ++seed) CHECK(fixture.is_same(0, seed));
    CHECK(fixture.kept->reads == 1);
  }
}

TEST_CASE("in a relaxed order nothing of the prefix waits for what is behind it, kept or not") {
  for (const char* change : {R"("contrast", "magnitudes": [0.7])", R"("rotate", "magnitudes": [180])",
                             R"("rotate", "magnitudes": [20])", R"("sharpness", "magnitudes": [0.7])"}) {
    CAPTURE(change);
    PrefixPictures fixture(
        (std::string(R"([{"op": "decode_rgb"}, {"op": "augment", "name": )") + change +
         R"(}, {"op": "random_resized_crop", "size": [32, 32], "scale": [0.1, 0.5], "ratio": [1, 1]}])")
            .c_str(),
        "relaxed");
    for (std::uint32_t seed = 1; seed < 5; ++seed) CHECK(fixture.is_same(0, seed));
    CHECK(fixture.kept->reads == 1);
  }
}

TEST_CASE("a pipeline without such a prefix keeps nothing") {
  PrefixPictures fixture(testing::kTensorOps);
  CHECK(fixture.is_same(0, 1));
  CHECK(fixture.kept->outputs.empty());
}

TEST_CASE("nothing is made to be kept where there is no room for it") {
  PrefixPictures fixture(kRandomCrop);
  fixture.kept->room = 40 * 53 * 3 + 8 - 1;  // of a 90x120 picture, resized, and its size
  CHECK(fixture.is_same(0, 1));
  CHECK(fixture.kept->outputs.empty());
  fixture.kept->room += 1;
  CHECK(fixture.is_same(0, 1));
  CHECK(fixture.kept->outputs.size() == 1);
}

TEST_CASE("a kept output that cannot be one is left alone, and the sample made from the file") {
  using Bytes = std::vector<std::uint8_t>;
  const Bytes another_size = [] {
    Bytes bytes(std::size_t{3} * 5 * 7);
    for (const int side : {5, 7})
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(side >> shift));
    return bytes;
  }();
  for (const Bytes& lie : {Bytes{}, Bytes(7), Bytes(8), Bytes(8, 0xFF), Bytes(3 * 32 * 32), another_size}) {
    for (const char* ops : {kValidation, kRandomCrop}) {
      PrefixPictures fixture(ops);
      fixture.kept->outputs["/data/good.jpg"] = lie;
      CHECK(fixture.is_same(0, 3));
      CHECK(fixture.kept->reads == 1);
    }
  }
}

TEST_CASE("a damaged file gives the same pixels or the same error as without a cache") {
  PrefixPictures fixture(
      R"([{"op": "decode_rgb"}, {"op": "resize", "size": [80]}, {"op": "random_crop", "size": [8, 8]}])");
  const auto whole = encode_picture({90, 120}, {});
  int failures = 0;
  for (std::size_t tenth = 3; tenth < 10; ++tenth) {
    fixture.kept->outputs.clear();  // they know no states of files
    auto& picture = fixture.files->files["/data/truncated.jpg"];
    picture.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() * tenth / 10));
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
      CHECK(fixture.is_same(2, seed));
      if (!fixture.pipeline->produce(2, seed, fixture.pixels, fixture.workspace).ok()) ++failures;
    }
    picture = whole;
    picture[whole.size() * tenth / 10] ^= 0x55;
    for (std::uint32_t seed = 0; seed < 8; ++seed) CHECK(fixture.is_same(2, seed));
  }
  CHECK(failures > 0);
}

Prefix prefix_of(const char* ops, const char* more = "") {
  const std::string spec =
      std::string(R"({"version": 2, "source": {"kind": "image_files", "root": "", "files": 0}, )") + more +
      R"("ops": )" + ops + "}\n" + testing::file_table({});
  const auto parsed = parse_pipeline_spec(spec);
  REQUIRE(parsed.ok());
  return parsed->prefix;
}

TEST_CASE("the prefix ends before the first operation that draws, and before the tensor") {
  constexpr const char* kAll[] = {"", R"({"op": "grayscale"},)", R"({"op": "augment", "name": "equalize"},)",
                                  R"({"op": "pad", "padding": [1, 1, 1, 1]},)"};
  for (const char* extra : kAll) {
    const std::string ops = std::string(R"([{"op": "decode_rgb"}, )") + extra +
                            R"({"op": "center_crop", "size": [8, 8]}, {"op": "to_tensor"}])";
    CHECK(prefix_of(ops.c_str()).ops == (*extra == '\0' ? 2U : 3U));
  }
  for (const char* random :
       {R"({"op": "random_crop", "size": [8, 8]})", R"({"op": "random_horizontal_flip", "p": 0})",
        R"({"op": "random_vertical_flip", "p": 0.5})", R"({"op": "random_grayscale", "p": 0.1})",
        R"({"op": "color_jitter", "hue": [-0.1, 0.1]})", R"({"op": "random_rotation", "degrees": [-5, 5]})",
        R"({"op": "random_apply", "p": 0.5, "ops": [{"op": "grayscale"}]})",
        R"({"op": "random_resized_crop", "size": [8, 8], "scale": [0.5, 1], "ratio": [0.75, 1.5]})"}) {
    CAPTURE(random);
    const std::string ops = std::string(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [9, 9]}, )") + random +
                            R"(, {"op": "center_crop", "size": [8, 8]}])";
    CHECK(prefix_of(ops.c_str()).ops == 2);
    const std::string first =
        std::string(R"([{"op": "decode_rgb"}, )") + random + R"(, {"op": "resize", "size": [9, 9]}])";
    CHECK(prefix_of(first.c_str()).fingerprint.empty());
  }
}

TEST_CASE("a fingerprint is of all that decides the output, and of nothing else") {
  constexpr const char* kOps = R"([{"op": "decode_rgb"}, {"op": "resize", "size": [9, 9]}])";
  const std::string fingerprint = prefix_of(kOps).fingerprint;
  CHECK(prefix_of(R"([{"op": "decode_rgb"}, {"size": [9, 9], "op": "resize"}, {"op": "to_tensor"}])").fingerprint ==
        fingerprint);
  CHECK(
      prefix_of(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [9, 9]}, {"op": "random_vertical_flip", "p": 0.5}])")
          .fingerprint == fingerprint);
  CHECK(prefix_of(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [9, 10]}])").fingerprint != fingerprint);
  CHECK(prefix_of(R"([{"op": "decode_rgb"}, {"op": "resize", "size": [9, 9], "interpolation": "bicubic"}])")
            .fingerprint != fingerprint);
  CHECK(prefix_of(R"([{"op": "decode_rgb"}, {"op": "center_crop", "size": [9, 9]}])").fingerprint != fingerprint);
  CHECK(prefix_of(kOps, R"("pillow": 10, )").fingerprint != fingerprint);
  CHECK(prefix_of(kOps, R"("max_image_pixels": 1000, )").fingerprint != fingerprint);
  CHECK(prefix_of(kOps, R"("order": "program", )").fingerprint == fingerprint);
  CHECK(prefix_of(kOps, R"("order": "relaxed", )").fingerprint != fingerprint);
}

}  // namespace
}  // namespace sluice::pipeline
