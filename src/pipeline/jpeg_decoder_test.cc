#include "src/pipeline/jpeg_decoder.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::pipeline {
namespace {

using testing::encode_picture;
using testing::JpegOptions;
using Bytes = std::vector<std::uint8_t>;

Bytes decoded(JpegDecoder& decoder, const Bytes& file, const Box& box) {
  REQUIRE(decoder.open(file).ok());
  const auto view = decoder.decode(box);
  if (!view) FAIL(view.error().to_string());
  return testing::pixels_of(*view);
}

Bytes cut(const Bytes& pixels, ImageSize size, const Box& box) {
  Bytes part;
  for (int y = box.top; y < box.top + box.height; ++y) {
    const std::uint8_t* row =
        pixels.data() +
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width) + static_cast<std::size_t>(box.left)) * 3;
    part.insert(part.end(), row, row + static_cast<std::size_t>(box.width) * 3);
  }
  return part;
}

struct Variety {
  std::string_view name;
  JpegOptions options;
};

const Variety kVarieties[] = {
    {"4:2:0", {}},
    {"4:2:2", {.vertical_sampling = 1}},
    {"4:4:4", {.horizontal_sampling = 1, .vertical_sampling = 1}},
    {"4:4:0", {.horizontal_sampling = 1, .vertical_sampling = 2}},
    {"4:1:1", {.horizontal_sampling = 4, .vertical_sampling = 1}},
    {"4:1:0", {.horizontal_sampling = 4, .vertical_sampling = 2}},
    {"progressive", {.progressive = true}},
    {"progressive 4:2:2", {.vertical_sampling = 1, .progressive = true}},
    {"restart markers", {.restart_interval_rows = 2}},
    {"grey", {.components = 1}},
    {"CMYK", {.components = 4}},
    {"YCCK 4:2:0", {.components = 4, .ycck = true}},
    {"low quality", {.quality = 5}},
};

TEST_CASE("decoding a box gives the bytes of decoding everything and cutting the box out") {
  JpegDecoder decoder;
  std::mt19937 random(1);
  for (const Variety& variety : kVarieties) {
    for (const ImageSize size : {ImageSize{75, 101}, ImageSize{64, 64}, ImageSize{33, 17}, ImageSize{1, 50}}) {
      const Bytes file = encode_picture(size, variety.options);
      const Bytes whole = decoded(decoder, file, {0, 0, size.height, size.width});
      for (int i = 0; i < 60; ++i) {
        const auto below = [&random](int bound) {
          return static_cast<int>(random() % static_cast<std::uint32_t>(bound));
        };
        Box box{below(size.height), below(size.width), 1, 1};
        box.height += below(size.height - box.top);
        box.width += below(size.width - box.left);
        CAPTURE(variety.name, size.height, size.width, box.top, box.left, box.height, box.width);
        CHECK(decoded(decoder, file, box) == cut(whole, size, box));
      }
    }
  }
}

TEST_CASE("grey is replicated to three channels") {
  JpegDecoder decoder;
  const Bytes pixels = decoded(decoder, encode_picture({20, 30}, {.components = 1}), {0, 0, 20, 30});
  for (std::size_t i = 0; i < pixels.size(); i += 3) CHECK((pixels[i] == pixels[i + 1] && pixels[i] == pixels[i + 2]));
}

TEST_CASE("a file cut off anywhere is data loss, even below the box") {
  JpegDecoder decoder;
  for (const bool progressive : {false, true}) {
    const Bytes file = encode_picture({60, 80}, {.progressive = progressive});
    for (std::size_t length = 3; length < file.size(); length += 1 + length % 13) {
      const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
      CAPTURE(progressive, length, file.size());
      const auto size = decoder.open(part);
      const auto view = size ? decoder.decode({0, 0, 8, 8}) : Result<RgbView>(size.error());
      REQUIRE_FALSE(view.ok());
      CHECK(view.error().code() == ErrorCode::kDataLoss);
      CHECK(view.error().message() == "the file is truncated");
    }
    CHECK(decoded(decoder, file, {0, 0, 8, 8}).size() == 192);  // and the decoder still works
  }
}

TEST_CASE("damaged files give an error or some pixels, never a crash, and the decoder survives") {
  JpegDecoder decoder;
  std::mt19937 random(2);
  const Bytes intact = encode_picture({40, 40}, {});
  const Bytes want = decoded(decoder, intact, {3, 5, 20, 30});
  int refused = 0;
  for (const Variety& variety : kVarieties) {
    const Bytes file = encode_picture({48, 56}, variety.options);
    for (int round = 0; round < 150; ++round) {
      Bytes damaged = file;
      // Early bytes are tables and sizes: most harm is done there.
      const std::size_t reach = round % 2 == 0 ? std::min<std::size_t>(700, damaged.size()) : damaged.size();
      for (std::uint32_t i = 0; i < 1 + random() % 4; ++i) {
        damaged[2 + random() % (reach - 2)] = static_cast<std::uint8_t>(random());
      }
      const auto size = decoder.open(damaged);
      if (!size || static_cast<std::int64_t>(size->height) * size->width > 4'000'000) {
        ++refused;
        continue;
      }
      const Box box{size->height / 3, size->width / 3, size->height - size->height / 3, size->width - size->width / 3};
      if (!decoder.decode(box)) ++refused;
    }
  }
  CHECK(refused > 100);
  CHECK(decoded(decoder, intact, {3, 5, 20, 30}) == want);
}

// Rewrites the frame header: SOF0 is FF C0, length, precision, height, width, components.
Bytes with_frame_header(Bytes file, std::size_t offset, std::uint16_t value) {
  const Bytes marker{0xFF, 0xC0};
  const auto frame = std::search(file.begin(), file.end(), marker.begin(), marker.end());
  REQUIRE(frame != file.end());
  frame[static_cast<std::ptrdiff_t>(offset)] = static_cast<std::uint8_t>(value >> 8);
  frame[static_cast<std::ptrdiff_t>(offset) + 1] = static_cast<std::uint8_t>(value);
  return file;
}

TEST_CASE("an image as large as a decompression bomb is refused before any memory is spent") {
  JpegDecoder decoder;
  Bytes file = encode_picture({16, 16}, {});
  file = with_frame_header(with_frame_header(file, 5, 65000), 7, 65000);
  const auto size = decoder.open(file);
  REQUIRE_FALSE(size.ok());
  CHECK(size.error().code() == ErrorCode::kInvalidArgument);
  CHECK(size.error().message() == "has 65000x65000 pixels, more than Pillow accepts (decompression bomb)");
}

TEST_CASE("twelve bits per sample are refused with the library's reason") {
  JpegDecoder decoder;
  const Bytes file = with_frame_header(encode_picture({16, 16}, {}), 3, 11 << 8 | 12);
  const auto size = decoder.open(file);
  const auto view = size ? decoder.decode({0, 0, 1, 1}) : Result<RgbView>(size.error());
  REQUIRE_FALSE(view.ok());
  CHECK(view.error().message().starts_with("damaged or unsupported JPEG: "));
}

}  // namespace
}  // namespace sluice::pipeline
