#include "src/pipeline/png_decoder.h"

#include <functional>
#include <string>
#include <string_view>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/png_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_png;
using testing::PngOptions;
using testing::Random;
using Bytes = std::vector<std::uint8_t>;

Bytes decoded(PngDecoder& decoder, const Bytes& file, const Box& box) {
  REQUIRE(decoder.open(file).ok());
  const auto view = decoder.decode(box);
  if (!view) FAIL(view.error().to_string());
  CHECK(view->size == ImageSize{box.height, box.width});
  return testing::pixels_of(*view);
}

Bytes whole_png(PngDecoder& decoder, const Bytes& file, ImageSize size) {
  return decoded(decoder, file, {0, 0, size.height, size.width});
}

Bytes cut(const Bytes& pixels, ImageSize size, const Box& box) {
  return testing::pixels_of({&pixels[static_cast<std::size_t>(box.top * size.width + box.left) * 3],
                             static_cast<std::size_t>(size.width) * 3,
                             {box.height, box.width}});
}

// What the decoder says of a file that it does not take; "" if it takes it.
std::string refusal(const Bytes& file) {
  PngDecoder decoder;
  const auto size = decoder.open(file);
  if (!size) return size.error().to_string();
  const auto view = decoder.decode({0, 0, size->height, size->width});
  return view ? "" : view.error().to_string();
}

std::vector<PngOptions> all_kinds() {
  std::vector<PngOptions> kinds;
  for (const bool is_interlaced : {false, true}) {
    for (const int bits : {1, 2, 4, 8}) {
      kinds.push_back({.colour = PngColour::kGrey, .depth_bits = bits, .is_interlaced = is_interlaced});
      kinds.push_back({.colour = PngColour::kPalette, .depth_bits = bits, .is_interlaced = is_interlaced});
    }
    for (const PngColour colour : {PngColour::kRgb, PngColour::kGreyAlpha, PngColour::kRgbAlpha}) {
      for (const int bits : {8, 16}) {
        kinds.push_back({.colour = colour, .depth_bits = bits, .is_interlaced = is_interlaced});
      }
    }
  }
  return kinds;
}

// png_conformance_test.py compares whole images with Pillow's.
TEST_CASE("a box of a PNG has the bytes of the whole image there") {
  PngDecoder decoder;
  Random random(1);
  for (const PngOptions& kind : all_kinds()) {
    for (const ImageSize size : {ImageSize{21, 34}, ImageSize{8, 8}, ImageSize{1, 19}, ImageSize{17, 1}}) {
      const Bytes file = encode_png(size, kind);
      const Bytes all = whole_png(decoder, file, size);
      for (int i = 0; i < 20; ++i) {
        const Box box = random.box(size);
        CAPTURE(static_cast<int>(kind.colour), kind.depth_bits, kind.is_interlaced, size.height, size.width, box.top,
                box.left, box.height, box.width);
        CHECK(decoded(decoder, file, box) == cut(all, size, box));
      }
    }
  }
}

TEST_CASE("an interlaced PNG of unfiltered rows has its pixels where the passes put them") {
  const ImageSize size{9, 10};
  PngOptions options{.is_interlaced = true, .filter = 0};
  PngDecoder decoder;
  const Bytes pixels = whole_png(decoder, encode_png(size, options), size);
  const Bytes rows = testing::png_rows(size, options, 1);
  CHECK(Bytes(pixels.begin(), pixels.begin() + 3) == Bytes(rows.begin() + 1, rows.begin() + 4));
  CHECK(Bytes(&pixels[8 * 3], &pixels[9 * 3]) == Bytes(rows.begin() + 4, rows.begin() + 7));
}

TEST_CASE("rows in many chunks are those of one chunk") {
  PngDecoder decoder;
  const ImageSize size{30, 41};
  const Bytes want = whole_png(decoder, encode_png(size, {}), size);
  for (const std::size_t bytes : {1, 7, 1000, 8192}) {
    CHECK(whole_png(decoder, encode_png(size, {.chunk_bytes = bytes}), size) == want);
  }
}

TEST_CASE("text, gamma and colour profiles change no pixel") {
  PngDecoder decoder;
  const ImageSize size{12, 13};
  const Bytes want = whole_png(decoder, encode_png(size, {}), size);
  const std::string_view key = "words";
  Bytes compressed(key.begin(), key.end());
  compressed.insert(compressed.end(), {0, 0});
  const Bytes stream = testing::zlib_stream(Bytes(1000, 'x'));
  compressed.insert(compressed.end(), stream.begin(), stream.end());
  PngOptions options{.chunk_bytes = 100};
  options.before_rows = {{"gAMA", Bytes(4)},   {"cHRM", Bytes(32)}, {"sRGB", {0}},       {"pHYs", Bytes(9)},
                         {"iCCP", compressed}, {"tIME", Bytes(7)},  {"eXIf", Bytes(20)}, {"zTXt", compressed},
                         {"prVt", {}},         {"PLTE", Bytes(6)},  {"tRNS", Bytes(6)}};
  options.behind_rows = {{"tEXt", {'a', 0, 'b'}}, {"zTXt", compressed}};
  CHECK(whole_png(decoder, encode_png(size, options), size) == want);
}

using Change = std::function<void(Bytes& file)>;

TEST_CASE("a PNG that Pillow may see otherwise is refused") {
  struct Case {
    std::string_view name;
    PngOptions options;
    std::string_view want;
  };
  const Bytes large = testing::zlib_stream(Bytes(2 << 20));
  Bytes bomb{'a', 0, 0};
  bomb.insert(bomb.end(), large.begin(), large.end());
  const auto with = [](std::string type, Bytes data) {
    return PngOptions{.before_rows = {{std::move(type), std::move(data)}}};
  };
  for (const Case& c : {
           Case{"16 bits of grey", {.colour = PngColour::kGrey, .depth_bits = 16}, "16 bits of grey"},
           Case{"24 bits", {.depth_bits = 24}, "an unknown kind"},
           Case{"a palette of 16 bits", {.colour = PngColour::kPalette, .depth_bits = 16}, "an unknown kind"},
           Case{"no palette", {.colour = PngColour::kPalette, .colours = 0}, "its palette"},
           Case{"a small palette", {.colour = PngColour::kPalette, .colours = 9}, "lacks colours"},
           Case{"a filter 5", {.filter = 5}, "its pixels"},
           Case{"an animation", with("acTL", Bytes(8)), "a chunk acTL"},
           Case{"a frame", with("fcTL", Bytes(26)), "a chunk fcTL"},
           Case{"an unknown critical chunk", with("CRIT", {}), "a chunk CRIT"},
           Case{"a type that is none", with("a-bc", {}), "a chunk a-bc"},
           Case{"a short gamma", with("gAMA", Bytes(3)), "a chunk gAMA"},
           Case{"a short transparency", with("tRNS", Bytes(5)), "its transparency"},
           Case{"a key that is taken", with("tEXt", {'b', 'b', 'o', 'x', 0, 'x'}), "a chunk tEXt"},
           Case{"much text", with("zTXt", bomb), "a chunk zTXt"},
           Case{"a large profile", with("iCCP", bomb), "a chunk iCCP"},
           Case{"a profile without a name", with("iCCP", {'a', 'b'}), "a chunk iCCP"},
           Case{"rows in two places", {.behind_rows = {{"tEXt", {'a', 0}}, {"IDAT", {}}}}, "rows in two places"},
           Case{
               "a palette behind the rows", {.behind_rows = {{"PLTE", Bytes(3)}}}, "its palette is in the wrong place"},
       }) {
    CAPTURE(c.name);
    CHECK_THAT(refusal(encode_png({6, 200}, c.options)), Catch::Contains(std::string(c.want)));
  }
}

TEST_CASE("a damaged PNG is refused, wherever the damage is") {
  const ImageSize size{40, 50};
  const Bytes rows = testing::png_rows(size, {}, 1);
  const Bytes stream = testing::zlib_stream(rows);
  const auto around = [&](const Bytes& damaged) { return refusal(testing::png_around(size, {}, damaged)); };
  CHECK(around(stream).empty());
  for (std::size_t at = 0; at < stream.size(); at += 37) {
    Bytes damaged = stream;
    damaged[at] ^= 0x10;
    CHECK_FALSE(around(damaged).empty());
    CHECK_FALSE(around(Bytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(at))).empty());
  }
  Bytes more = rows;
  more.push_back(0);
  CHECK_FALSE(around(testing::zlib_stream(more)).empty());
  Bytes small_window = stream;  // of 256 bytes, where zlib looks for longer distances
  small_window[0] = 0x08;
  small_window[1] = 0x1D;
  CHECK_FALSE(around(small_window).empty());
  const Bytes file = encode_png(size, {});
  for (std::size_t bytes = 8; bytes < file.size(); bytes += bytes < 100 ? 1 : 97) {
    CHECK_FALSE(refusal(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes))).empty());
  }
  Bytes header = file;
  header[17] ^= 1;
  CHECK_THAT(refusal(header), Catch::Contains("no header"));
}

TEST_CASE("a large PNG costs no memory that its bytes cannot fill") {
  const Bytes tiny = testing::zlib_stream(Bytes(1000));
  CHECK_THAT(refusal(testing::png_around({13'000, 13'000}, {}, tiny)), Catch::Contains("its pixels"));
  CHECK_THAT(refusal(testing::png_around({13'000, 13'000}, {.colour = PngColour::kRgbAlpha, .depth_bits = 16}, tiny)),
             Catch::Contains("more bytes of pixels"));
  CHECK_THAT(refusal(testing::png_around({65'000, 65'000}, {}, tiny)),
             Catch::Contains("has 65000x65000 pixels, more than Pillow accepts (decompression bomb)"));
  CHECK_THAT(refusal(testing::png_around({0, 5}, {}, tiny)), Catch::Contains("no pixels"));
}

TEST_CASE("after a file that fails the decoder takes the next one") {
  PngDecoder decoder;
  const ImageSize size{20, 20};
  const Bytes file = encode_png(size, {});
  const Bytes want = whole_png(decoder, file, size);
  Bytes damaged = file;
  damaged[file.size() / 2] ^= 0xFF;
  REQUIRE(decoder.open(damaged).ok());
  CHECK_FALSE(decoder.decode({0, 0, 1, 1}).ok());
  CHECK_FALSE(decoder.open({file.data(), 20}).ok());
  CHECK(whole_png(decoder, file, size) == want);
}

}  // namespace
}  // namespace sluice::pipeline
