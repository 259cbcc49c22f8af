#include "src/pipeline/webp_decoder.h"

#include <string>
#include <string_view>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/webp_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_webp;
using testing::Random;
using testing::webp_chunks;
using testing::webp_features;
using testing::webp_of;
using testing::WebpChunk;
using testing::WebpOptions;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kAnimation = 0x02;
constexpr std::uint8_t kAlpha = 0x10;

Bytes decoded(WebpDecoder& decoder, const Bytes& file, const Box& box) {
  REQUIRE(decoder.open(file).ok());
  const auto view = decoder.decode(box);
  if (!view) FAIL(view.error().to_string());
  CHECK(view->size == ImageSize{box.height, box.width});
  return testing::pixels_of(*view);
}

// What the decoder says of a file that it does not take; "" if it takes it.
std::string refusal(const Bytes& file) {
  if (!is_webp(file)) return "is no WebP";
  WebpDecoder decoder;
  const auto size = decoder.open(file);
  if (!size) return size.error().to_string();
  const auto view = decoder.decode({0, 0, size->height, size->width});
  return view ? "" : view.error().to_string();
}

Bytes start_of(const Bytes& file, std::size_t bytes) {
  return {file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

const std::vector<WebpOptions> kKinds{
    {}, {.quality = 5}, {.has_alpha = true}, {.is_lossless = true}, {.is_lossless = true, .has_alpha = true}};

// webp_conformance_test.py compares whole images with Pillow's.
TEST_CASE("a box of a WebP has the bytes of the whole image there") {
  WebpDecoder decoder;
  Random random(1);
  for (const WebpOptions& kind : kKinds) {
    for (const ImageSize size : {ImageSize{21, 34}, ImageSize{16, 16}, ImageSize{1, 19}, ImageSize{17, 1}}) {
      const Bytes file = encode_webp(size, kind);
      const Bytes all = decoded(decoder, file, {0, 0, size.height, size.width});
      for (int i = 0; i < 10; ++i) {
        const Box box = random.box(size);
        const RgbView there{&all[static_cast<std::size_t>(box.top * size.width + box.left) * 3],
                            static_cast<std::size_t>(size.width) * 3,
                            {box.height, box.width}};
        CHECK(decoded(decoder, file, box) == testing::pixels_of(there));
      }
    }
  }
}

TEST_CASE("profiles and other metadata change no pixel, wherever they stand") {
  WebpDecoder decoder;
  const ImageSize size{12, 13};
  const Box box{0, 0, 12, 13};
  for (const WebpOptions& kind : kKinds) {
    const Bytes plain = encode_webp(size, kind);
    std::vector<WebpChunk> chunks = webp_chunks(plain);
    if (chunks[0].type != "VP8X") chunks.insert(chunks.begin(), webp_features(size, 0));
    chunks.insert(chunks.begin() + 1, {{"ICCP", Bytes(99)}, {"EXIF", Bytes(7)}});
    chunks.push_back({"XMP ", Bytes(50, 'x')});
    CHECK(decoded(decoder, webp_of(chunks), box) == decoded(decoder, plain, box));
  }
}

TEST_CASE("a WebP that Pillow may see otherwise is refused") {
  const ImageSize size{6, 20};
  const WebpChunk lossy = webp_chunks(encode_webp(size, {}))[0];
  const WebpChunk lossless = webp_chunks(encode_webp(size, {.is_lossless = true}))[0];
  const std::vector<WebpChunk> alpha = webp_chunks(encode_webp(size, {.has_alpha = true}));
  REQUIRE((alpha[0].type == "VP8X" && alpha[1].type == "ALPH" && alpha[2].type == "VP8 "));
  const WebpChunk features = webp_features(size, 0);
  WebpChunk long_features = features;
  long_features.data.push_back(0);
  struct Case {
    std::string_view name;
    std::vector<WebpChunk> chunks;
    std::string_view want;
  };
  for (const Case& c : {
           Case{"an animation", {webp_features(size, kAnimation), lossy}, "an animation"},
           Case{"a frame", {features, {"ANMF", Bytes(30)}}, "a chunk ANMF"},
           Case{"an unknown chunk", {features, {"abcd", {}}, lossy}, "a chunk abcd"},
           Case{"more behind a simple image", {lossy, {"EXIF", Bytes(4)}}, "more behind its image"},
           Case{"two images", {features, lossy, lossless}, "two images"},
           Case{"no image", {features, {"EXIF", Bytes(4)}}, "no image"},
           Case{"features twice", {features, features, lossy}, "a chunk VP8X"},
           Case{"long features", {long_features, lossy}, "its features"},
           Case{"another size", {webp_features({6, 21}, 0), lossy}, "another size"},
           Case{"alpha that is not announced", {features, alpha[1], alpha[2]}, "an alpha plane"},
           Case{"alpha alone", {webp_features(size, kAlpha), alpha[1]}, "no image behind its alpha"},
           Case{"alpha of a lossless image", {webp_features(size, kAlpha), alpha[1], lossless}, "no image behind"},
           Case{"something behind alpha", {alpha[0], alpha[1], {"EXIF", {}}, alpha[2]}, "no image behind"},
           Case{"alpha twice", {alpha[0], alpha[1], alpha[1], alpha[2]}, "no image behind"},
           Case{"an empty image", {{"VP8 ", {}}}, "no header"},
           Case{"an image of zeros", {{"VP8L", Bytes(40)}}, "no header"},
           Case{"an animation first", {{"ANIM", Bytes(6)}}, "is no WebP"},
       }) {
    CAPTURE(c.name);
    CHECK_THAT(refusal(webp_of(c.chunks)), Catch::Contains(std::string(c.want)));
  }
}

TEST_CASE("a WebP that ends early, or goes on behind its end, is refused") {
  for (const WebpOptions& kind : kKinds) {
    const Bytes file = encode_webp({40, 50}, kind);
    CHECK(refusal(file).empty());
    for (std::size_t bytes = 0; bytes < file.size(); bytes += bytes < 60 ? 1 : 41) {
      CHECK_FALSE(refusal(start_of(file, bytes)).empty());
    }
    Bytes more = file;
    more.push_back(0);
    CHECK_THAT(refusal(more), Catch::Contains("its length"));
    // The same in chunks whose lengths are right.
    std::vector<WebpChunk> chunks = webp_chunks(file);
    chunks.back().data.resize(chunks.back().data.size() / 2);
    CHECK_FALSE(refusal(webp_of(chunks)).empty());
  }
  std::vector<WebpChunk> alpha = webp_chunks(encode_webp({40, 50}, {.has_alpha = true}));
  alpha[1].data.resize(3);
  CHECK_THAT(refusal(webp_of(alpha)), Catch::Contains("its pixels"));
}

TEST_CASE("a large WebP costs no memory before it is refused") {
  WebpChunk lossy = webp_chunks(encode_webp({8, 8}, {}))[0];
  for (const std::size_t at : {6U, 8U}) {  // its width and height
    lossy.data[at] = 0xFF;
    lossy.data[at + 1] = 0x3F;
  }
  CHECK_THAT(refusal(webp_of({lossy})),
             Catch::Contains("has 16383x16383 pixels, more than Pillow accepts (decompression bomb)"));
  WebpChunk lossless = webp_chunks(encode_webp({8, 8}, {.is_lossless = true}))[0];
  const std::uint32_t size = 12'999U | 12'999U << 14;
  for (std::size_t i = 0; i < 4; ++i) lossless.data[1 + i] = static_cast<std::uint8_t>(size >> 8 * i);
  CHECK_THAT(refusal(webp_of({lossless})), Catch::Contains("more bytes of pixels"));
}

TEST_CASE("after a WebP that fails the decoder takes the next one") {
  WebpDecoder decoder;
  const Box box{0, 0, 20, 20};
  const Bytes file = encode_webp({20, 20}, {.is_lossless = true});
  const Bytes want = decoded(decoder, file, box);
  std::vector<WebpChunk> cut = webp_chunks(file);
  cut[0].data.resize(cut[0].data.size() / 2);
  REQUIRE(decoder.open(webp_of(cut)).ok());
  CHECK_FALSE(decoder.decode({0, 0, 1, 1}).ok());
  CHECK_FALSE(decoder.open(start_of(file, 30)).ok());
  CHECK(decoded(decoder, file, box) == want);
}

}  // namespace
}  // namespace sluice::pipeline
