#include "src/pipeline/jpeg_baseline_decoder.h"

#include <optional>
#include <string>
#include <string_view>

#include "src/base/testing/catch.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::JpegOptions;
using testing::Random;
using Bytes = std::vector<std::uint8_t>;

// What a caller sees of a decoded box. libjpeg may warn of damage that the box does not need, so warnings count only
// for whole images.
struct Outcome {
  std::string error;
  Bytes pixels;
  bool warned = false;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(JpegDecoder& decoder, const Bytes& file, std::optional<Box> box) {
  const bool whole = !box;
  const auto size = decoder.open(file);
  if (!size) return {size.error().to_string(), {}, decoder.warned()};
  if (static_cast<std::int64_t>(size->height) * size->width > 1'000'000) return {"too large to be tested", {}, false};
  if (whole) box = Box{0, 0, size->height, size->width};
  const auto view = decoder.decode(*box);
  if (!view) return {view.error().to_string(), {}, whole && decoder.warned()};
  return {{}, testing::pixels_of(*view), whole && decoder.warned()};
}

struct Sampling {
  std::string_view name;
  JpegOptions options;
  int narrowest;  // image that libjpeg is not needed for
};

const Sampling kSamplings[] = {
    {"4:2:0", {}, 5},
    {"4:2:2", {.vertical_sampling = 1}, 5},
    {"4:4:4", {.horizontal_sampling = 1, .vertical_sampling = 1}, 1},
    {"grey", {.components = 1}, 1},
};

JpegOptions varied(JpegOptions options, Random& random) {
  options.quality = 1 + random.below(100);
  options.own_codes = random.below(2) == 0;
  options.noise = random.below(3) == 0 ? 0 : random.below(120);
  const int restarts = random.below(3);
  if (restarts == 1) options.restart_interval_rows = 1 + random.below(3);
  if (restarts == 2) options.restart_interval_mcus = 1 + random.below(5);
  return options;
}

TEST_CASE("baseline files of all sizes and kinds have libjpeg's pixels, whole and in part") {
  JpegDecoder libjpeg(nullptr);
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    Random random(1);
    for (int height = 1; height <= 40; ++height) {
      for (int width = 1; width <= 40; ++width) {
        const ImageSize size{height, width};
        const Sampling& sampling = kSamplings[random.below(std::size(kSamplings))];
        const Bytes file = encode_picture(size, varied(sampling.options, random));
        const Box box = random.box(size);
        CAPTURE(kernels->name, sampling.name, height, width, box.top, box.left, box.height, box.width);
        REQUIRE(outcome(decoder, file, {}) == outcome(libjpeg, file, {}));
        CHECK(decoder.decoded_baseline() == (width >= sampling.narrowest));
        REQUIRE(outcome(decoder, file, box) == outcome(libjpeg, file, box));
        CHECK(decoder.decoded_baseline() == (width >= sampling.narrowest));
      }
    }
  }
}

TEST_CASE("boxes of larger baseline files have libjpeg's pixels") {
  JpegDecoder libjpeg(nullptr);
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    Random random(2);
    for (const Sampling& sampling : kSamplings) {
      for (int i = 0; i < 20; ++i) {
        const ImageSize size{100 + random.below(100), 100 + random.below(100)};
        const Bytes file = encode_picture(size, varied(sampling.options, random));
        for (int j = 0; j < 5; ++j) {
          const Box box = random.box(size);
          CAPTURE(kernels->name, sampling.name, size.height, size.width, box.top, box.left, box.height, box.width);
          REQUIRE(outcome(decoder, file, box) == outcome(libjpeg, file, box));
          CHECK(decoder.decoded_baseline());
        }
      }
    }
  }
}

TEST_CASE("libjpeg decodes what is not common") {
  JpegDecoder decoder(&portable_jpeg_kernels());
  const JpegOptions rare[] = {
      {.horizontal_sampling = 1, .vertical_sampling = 2},
      {.horizontal_sampling = 4, .vertical_sampling = 1},
      {.progressive = true},
      {.components = 4},
      {.components = 4, .ycck = true},
  };
  for (const JpegOptions& options : rare) {
    CHECK(outcome(decoder, encode_picture({30, 40}, options), {}).error.empty());
    CHECK_FALSE(decoder.decoded_baseline());
  }
}

// With libjpeg-turbo's code for x86: for other processors its sums saturate elsewhere, where no image but damage has
// them.
TEST_CASE("a file cut off after any byte, or with any byte damaged, gives what libjpeg gives", "[amd64]") {
  JpegDecoder libjpeg(nullptr);
  Random random(3);
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    for (const int interval : {0, 2}) {
      const Bytes file = encode_picture({35, 50}, {.quality = 60, .restart_interval_mcus = interval});
      for (std::size_t i = 0; i < file.size(); ++i) {
        const Box box = random.box({35, 50});
        CAPTURE(kernels->name, interval, i, file.size());
        const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(i));
        REQUIRE(outcome(decoder, part, box) == outcome(libjpeg, part, box));
        Bytes damaged = file;
        damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ (1 << random.below(8)));
        REQUIRE(outcome(decoder, damaged, {}) == outcome(libjpeg, damaged, {}));
        damaged[i] = static_cast<std::uint8_t>(random.below(2) == 0 ? 0xFF : random.below(256));
        REQUIRE(outcome(decoder, damaged, {}) == outcome(libjpeg, damaged, {}));
      }
      CHECK(outcome(decoder, file, {}) == outcome(libjpeg, file, {}));
    }
  }
}

TEST_CASE("all kernels transform coefficients alike, beyond what 16 bits hold, too") {
  Random random(4);
  const auto available = available_jpeg_kernels();
  for (int round = 0; round < 4000; ++round) {
    CoefficientBlock block{};
    std::array<std::int16_t, kBlockEnd> steps{};
    const int range = 1 << (1 + random.below(16));
    const int filled = random.below(4) == 0 ? 8 : 1 + random.below(kBlockEnd);
    for (int i = 0; i < filled; ++i) block.values[i] = static_cast<std::int16_t>(random.below(range) - range / 2);
    for (std::int16_t& step : steps) step = static_cast<std::int16_t>(1 + random.below(255));
    std::optional<Bytes> wanted;
    for (const JpegKernels* kernels : available) {
      Bytes samples(64);
      kernels->inverse_transform(block, steps.data(), samples.data(), 8);
      if (!wanted) wanted = samples;
      CAPTURE(kernels->name, range, filled);
      REQUIRE(samples == *wanted);
    }
  }
}

TEST_CASE("all kernels convert every colour alike") {
  std::array<std::uint8_t, 256 + kSampleRowMargin> ramp{};
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<std::uint8_t>(i);
  constexpr std::size_t kRowBytes = (256 + kPixelRowMargin) * 3;
  for (int luma = 0; luma < 256; luma += 5) {
    for (int red = 0; red < 256; ++red) {
      const Bytes lumas(256 + kSampleRowMargin, static_cast<std::uint8_t>(luma));
      const Bytes reds(256 + kSampleRowMargin, static_cast<std::uint8_t>(red));
      std::optional<Bytes> wanted;
      for (const JpegKernels* kernels : available_jpeg_kernels()) {
        Bytes pixels(kRowBytes);
        kernels->to_rgb(lumas.data(), ramp.data(), reds.data(), pixels.data(), 256);
        pixels.resize(256 * 3);
        if (!wanted) wanted = pixels;
        REQUIRE(pixels == *wanted);
      }
    }
  }
}

TEST_CASE("a definition with more codes than there are is none") {
  HuffmanDefinition definition;
  definition.counts[1] = 1;
  definition.counts[2] = 1;
  HuffmanTable table;
  CHECK(table.define(HuffmanTable::Kind::kFirst, definition));
  definition.counts[2] = 2;  // one of them is all ones
  CHECK_FALSE(table.define(HuffmanTable::Kind::kFirst, definition));
  CHECK_FALSE(HuffmanPairTable().define(definition));
  definition.counts = {};
  definition.counts[16] = 255;
  definition.counts[15] = 2;  // more than there are symbols
  CHECK_FALSE(table.define(HuffmanTable::Kind::kOthers, definition));
  definition = {};
  definition.counts[3] = 1;
  definition.symbols[0] = 16;
  CHECK(table.define(HuffmanTable::Kind::kOthers, definition));
  CHECK_FALSE(table.define(HuffmanTable::Kind::kFirst, definition));  // a value of 16 bits
}

TEST_CASE("entropy-coded data lose their stuffing and end at each marker") {
  for (std::size_t before = 0; before < 20; ++before) {
    Bytes data(before, 7);
    const std::array<std::uint8_t, 5> tail{0xFF, 0, 9, 0xFF, 0xD3};
    data.insert(data.end(), tail.begin(), tail.end());
    data.insert(data.end(), {1, 0xFF, 0xD9, 0, 0});
    EntropyData entropy;
    entropy.start(data);
    REQUIRE(entropy.next_segment());
    Bytes wanted(before, 7);
    wanted.insert(wanted.end(), {0xFF, 9});
    CHECK(Bytes(entropy.segment().begin(), entropy.segment().end()) == wanted);
    CHECK(entropy.marker() == 0xD3);
    REQUIRE(entropy.next_segment());
    CHECK(entropy.segment().size() == 1);
    CHECK(entropy.marker() == kEndOfImageMarker);
    CHECK(entropy.rest().size() == 2);
    CHECK_FALSE(entropy.next_segment());
  }
}

}  // namespace
}  // namespace sluice::pipeline
