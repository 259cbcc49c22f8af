#include "src/pipeline/image_decoder.h"

#include <string_view>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/jpeg_encoder.h"
#include "src/pipeline/testing/png_encoder.h"
#include "src/pipeline/testing/webp_encoder.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST_CASE("one decoder takes JPEG, PNG and WebP files in turns") {
  const Bytes jpeg = testing::encode_picture({20, 30}, {});
  const Bytes png = testing::encode_png({11, 12}, {});
  const Bytes webp = testing::encode_webp({14, 13}, {});
  JpegDecoder jpeg_alone;
  PngDecoder png_alone;
  WebpDecoder webp_alone;
  REQUIRE((jpeg_alone.open(jpeg).ok() && png_alone.open(png).ok() && webp_alone.open(webp).ok()));
  const Box box{3, 4, 5, 6};
  const auto jpeg_pixels = testing::pixels_of(jpeg_alone.decode(box).value());
  const auto png_pixels = testing::pixels_of(png_alone.decode(box).value());
  const auto webp_pixels = testing::pixels_of(webp_alone.decode(box).value());
  ImageDecoder decoder;
  for (int i = 0; i < 2; ++i) {
    CHECK(decoder.open(jpeg).value() == ImageSize{20, 30});
    CHECK(testing::pixels_of(decoder.decode(box).value()) == jpeg_pixels);
    CHECK(decoder.open(png).value() == ImageSize{11, 12});
    CHECK(testing::pixels_of(decoder.decode(box).value()) == png_pixels);
    CHECK_FALSE(decoder.warned());
    CHECK(decoder.open(webp).value() == ImageSize{14, 13});
    CHECK(testing::pixels_of(decoder.decode(box).value()) == webp_pixels);
    CHECK_FALSE(decoder.warned());
  }
}

TEST_CASE("grey, CMYK, palettes and alpha are not RGB, also from coefficients") {
  struct Case {
    Bytes file;
    bool is_rgb;
  };
  ImageDecoder decoder;
  for (const auto& [file, is_rgb] :
       {Case{testing::encode_picture({20, 30}, {}), true},
        Case{testing::encode_picture({20, 30}, {.components = 1}), false},
        Case{testing::encode_picture({20, 30}, {.components = 4}), false},
        Case{testing::encode_png({11, 12}, {}), true}, Case{testing::encode_webp({14, 13}, {}), true}}) {
    REQUIRE(decoder.open(file).ok());
    CHECK(decoder.is_rgb() == is_rgb);
    JpegDecoder transcoder;
    Bytes coded;
    if (!transcoder.open(file).ok() || !transcoder.transcode(1 << 20, coded)) continue;
    REQUIRE(decoder.open_coefficients(coded).ok());
    CHECK(decoder.is_rgb() == is_rgb);
  }
}

TEST_CASE("what is none of these is named for what it is") {
  using namespace std::string_view_literals;
  struct Case {
    std::string_view bytes;
    ErrorCode want_code;
    std::string_view want;
  };
  ImageDecoder decoder;
  for (const Case& c :
       {Case{"GIF89a"sv, ErrorCode::kInvalidArgument, "is a GIF file; native pipelines decode JPEG, PNG and WebP only"},
        Case{"RIFFxxxxWEBPVP8?"sv, ErrorCode::kInvalidArgument, "is a RIFF file"},
        Case{"RIFFxxxxWEBPVP8X"sv, ErrorCode::kDataLoss, "damaged or truncated WebP: its length"},
        Case{"MM\0*"sv, ErrorCode::kInvalidArgument, "is a TIFF file"},
        Case{"<html>"sv, ErrorCode::kInvalidArgument, "is no JPEG, PNG or WebP file"},
        Case{"\x89PNG\n"sv, ErrorCode::kInvalidArgument, "is no JPEG, PNG or WebP file"},
        Case{"\xFF"sv, ErrorCode::kInvalidArgument, "is no JPEG, PNG or WebP file"},
        Case{"\x89PNG\r\n\x1a\n"sv, ErrorCode::kDataLoss, "damaged or truncated PNG: no header"},
        Case{"\xFF\xD8\xFF"sv, ErrorCode::kDataLoss, "the file is truncated"},
        Case{""sv, ErrorCode::kDataLoss, "the file is empty"}}) {
    const Bytes file(c.bytes.begin(), c.bytes.end());
    const auto size = decoder.open(file);
    REQUIRE_FALSE(size.ok());
    CHECK(size.error().code() == c.want_code);
    CHECK_THAT(size.error().message(), Catch::StartsWith(std::string(c.want)));
  }
}

}  // namespace
}  // namespace sluice::pipeline
