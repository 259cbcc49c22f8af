#include "src/pipeline/jpeg_coefficients.h"

#include <optional>
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

constexpr std::size_t kNoBound = std::size_t{1} << 30;

Bytes pixels_of(const Result<RgbView>& view) {
  REQUIRE(view.ok());
  return testing::pixels_of(*view);
}

// The pixels that libjpeg makes of a box of the file.
Bytes wanted_of(const Bytes& file, const Box& box) {
  JpegDecoder libjpeg(nullptr);
  REQUIRE(libjpeg.open(file).ok());
  return pixels_of(libjpeg.decode(box));
}

// Nothing if the file has no coefficients for us.
std::optional<Bytes> coefficients_of(JpegDecoder& decoder, const Bytes& file, std::size_t bytes_max = kNoBound) {
  Bytes coded;
  if (!decoder.open(file).ok() || !decoder.transcode(bytes_max, coded)) return std::nullopt;
  return coded;
}

struct Kind {
  std::string_view name;
  JpegOptions options;
  int narrowest;
};

const Kind kKinds[] = {
    {"4:2:0", {}, 5},
    {"4:2:2", {.vertical_sampling = 1}, 5},
    {"4:4:4", {.horizontal_sampling = 1, .vertical_sampling = 1}, 1},
    {"grey", {.components = 1}, 1},
    {"progressive 4:2:0", {.progressive = true}, 5},
    {"progressive 4:4:4", {.horizontal_sampling = 1, .vertical_sampling = 1, .progressive = true}, 1},
    {"progressive grey", {.components = 1, .progressive = true}, 1},
};

TEST_CASE("coefficients of files of all sizes and kinds have libjpeg's pixels, whole and in part") {
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    Random random(5);
    for (int height = 1; height <= 36; height += 1 + random.below(2)) {
      for (int width = 1; width <= 36; width += 1 + random.below(2)) {
        const Kind& kind = kKinds[random.below(std::size(kKinds))];
        JpegOptions options = kind.options;
        options.quality = 1 + random.below(100);
        options.noise = random.below(120);
        if (random.below(3) == 0) options.restart_interval_mcus = 1 + random.below(5);
        const ImageSize size{height, width};
        const Bytes file = encode_picture(size, options);
        CAPTURE(kernels->name, kind.name, height, width, options.quality);
        const auto coded = coefficients_of(decoder, file);
        REQUIRE(coded.has_value() == (width >= kind.narrowest));
        if (!coded) continue;
        for (const Box& box : {Box{0, 0, height, width}, random.box(size), random.box(size)}) {
          CAPTURE(box.top, box.left, box.height, box.width);
          const auto opened = decoder.open_coefficients(*coded);
          REQUIRE((opened.ok() && *opened == size));
          REQUIRE(pixels_of(decoder.decode(box)) == wanted_of(file, box));
        }
      }
    }
  }
}

TEST_CASE("boxes of larger files have libjpeg's pixels from coefficients") {
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    Random random(6);
    for (const Kind& kind : kKinds) {
      const ImageSize size{100 + random.below(100), 100 + random.below(100)};
      const Bytes file = encode_picture(size, kind.options);
      const auto coded = coefficients_of(decoder, file);
      REQUIRE(coded);
      for (int i = 0; i < 10; ++i) {
        const Box box = random.box(size);
        CAPTURE(kernels->name, kind.name, size.height, size.width, box.top, box.left, box.height, box.width);
        REQUIRE(decoder.open_coefficients(*coded).ok());
        REQUIRE(pixels_of(decoder.decode(box)) == wanted_of(file, box));
      }
    }
  }
}

TEST_CASE("rare kinds of files have no coefficients, nor have files without kernels or above the bound") {
  JpegDecoder decoder(&portable_jpeg_kernels());
  const JpegOptions rare[] = {
      {.horizontal_sampling = 1, .vertical_sampling = 2},
      {.horizontal_sampling = 4, .vertical_sampling = 1},
      {.components = 4},
      {.components = 4, .ycck = true},
      {.components = 4, .progressive = true},
  };
  for (const JpegOptions& options : rare) CHECK_FALSE(coefficients_of(decoder, encode_picture({30, 40}, options)));
  const Bytes file = encode_picture({30, 40}, {});
  JpegDecoder libjpeg(nullptr);
  CHECK_FALSE(coefficients_of(libjpeg, file));
  const auto coded = coefficients_of(decoder, file);
  REQUIRE(coded);
  CHECK_FALSE(libjpeg.open_coefficients(*coded).ok());
  CHECK(coefficients_of(decoder, file, coded->size()) == coded);
  CHECK_FALSE(coefficients_of(decoder, file, coded->size() - 1));
}

// As with whole decoding (jpeg_baseline_decoder_test.cc), libjpeg-turbo's code for x86 is meant.
TEST_CASE("a file that is cut off or damaged has no coefficients, or those of the pixels that libjpeg makes of it",
          "[amd64]") {
  JpegDecoder decoder(available_jpeg_kernels().back());
  JpegDecoder libjpeg(nullptr);
  Random random(7);
  for (const bool progressive : {false, true}) {
    const Bytes file =
        encode_picture({35, 50}, {.quality = 60, .progressive = progressive, .restart_interval_mcus = 3});
    for (std::size_t i = 0; i < file.size(); ++i) {
      CAPTURE(progressive, i);
      const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(i));
      REQUIRE_FALSE(coefficients_of(decoder, part));
      Bytes damaged = file;
      damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ (1 << random.below(8)));
      const auto coded = coefficients_of(decoder, damaged);
      if (!coded) continue;
      const auto size = decoder.open_coefficients(*coded);
      REQUIRE(size.ok());
      if (std::int64_t{size->height} * size->width > 100'000) continue;
      const Box all{0, 0, size->height, size->width};
      REQUIRE(pixels_of(decoder.decode(all)) == wanted_of(damaged, all));
      REQUIRE(libjpeg.open(damaged).ok());
      REQUIRE(libjpeg.decode(all).ok());
      REQUIRE_FALSE(libjpeg.warned());
    }
    CHECK(coefficients_of(decoder, file));
  }
}

TEST_CASE("all kernels pack blocks alike, and unpack what was packed") {
  Random random(8);
  for (int round = 0; round < 3000; ++round) {
    CoefficientBlock block{};
    const int range = 1 << (1 + random.below(16));
    const int filled = random.below(65);
    for (int i = 0; i < filled; ++i) {
      block.values[random.below(kBlockEnd)] = static_cast<std::int16_t>(random.below(range) - range / 2);
    }
    const bool fits = std::abs(block.values[0]) < 1 << 14;
    std::optional<Bytes> wanted;
    for (const JpegKernels* kernels : available_jpeg_kernels()) {
      Bytes packed(kPackedBytesMax + kPackedMarginBytes);
      const std::uint32_t length = kernels->pack_block(block, packed.data());
      CAPTURE(kernels->name, range, filled);
      REQUIRE((length != 0) == fits);
      if (length == 0) continue;
      REQUIRE(length <= kPackedBytesMax);
      packed.resize(length);
      if (!wanted) wanted = packed;
      REQUIRE(packed == *wanted);
      packed.resize(length + kPackedMarginBytes, 0xAA);
      CoefficientBlock unpacked;
      REQUIRE(kernels->unpack_block(packed.data(), unpacked) == length);
      REQUIRE(std::equal(unpacked.values, unpacked.values + kBlockEnd, block.values));
    }
  }
}

TEST_CASE("damaged coefficients are refused or make some pixels, the same with all kernels") {
  JpegDecoder maker(available_jpeg_kernels().back());
  const auto coded = coefficients_of(maker, encode_picture({40, 60}, {}));
  REQUIRE(coded);
  Random random(9);
  for (int round = 0; round < 3000; ++round) {
    Bytes damaged = *coded;
    const int changes = 1 + random.below(3);
    // Half of the changes hit the head and the places of rows.
    const int reach = random.below(2) == 0 ? 440 : static_cast<int>(damaged.size());
    for (int i = 0; i < changes; ++i) {
      damaged[static_cast<std::size_t>(random.below(reach))] = static_cast<std::uint8_t>(random.below(256));
    }
    if (random.below(4) == 0) damaged.resize(static_cast<std::size_t>(random.below(static_cast<int>(damaged.size()))));
    std::optional<Bytes> wanted;
    for (const JpegKernels* kernels : available_jpeg_kernels()) {
      JpegDecoder decoder(kernels);
      const auto size = decoder.open_coefficients(damaged);
      Bytes found;
      if (size.ok() && std::int64_t{size->height} * size->width < 100'000) {
        const auto view = decoder.decode({0, 0, size->height, size->width});
        if (view.ok()) found = pixels_of(view);
      }
      if (!wanted) wanted = found;
      REQUIRE(found == *wanted);
    }
  }
}

TEST_CASE("places and lengths that lead out of the bytes are refused") {
  const ImageSize size{8, 400};
  constexpr std::size_t kPlaceAt = 12 + 128;  // of the only row of blocks
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    JpegDecoder decoder(kernels);
    const auto coded = coefficients_of(decoder, encode_picture(size, {.components = 1}));
    REQUIRE(coded);
    const auto is_refused = [&](const Bytes& damaged) {
      const Bytes own = damaged;  // of exactly its size: a sanitizer sees a read behind it
      REQUIRE(decoder.open_coefficients(own).ok());
      return !decoder.decode({0, 390, 8, 10}).ok();
    };
    CHECK_FALSE(is_refused(*coded));
    Bytes long_blocks = *coded;
    std::fill_n(long_blocks.begin() + kPlaceAt + 4, 50, std::uint8_t{255});
    CHECK(is_refused(long_blocks));
    for (const std::size_t place : {coded->size() - kPackedMarginBytes - 49, coded->size(), std::size_t{0xFFFFFFFF}}) {
      Bytes far = *coded;
      for (std::size_t i = 0; i < 4; ++i) far[kPlaceAt + i] = static_cast<std::uint8_t>(place >> 8 * i);
      CHECK(is_refused(far));
    }
  }
}

}  // namespace
}  // namespace sluice::pipeline
