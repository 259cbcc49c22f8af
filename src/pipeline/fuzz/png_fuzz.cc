// A PNG file: refused with a reason, or decoded, all of it or a part. The input is a file, then a file whose checksums
// are mended, and then rows of pixels of any kind, for which a sound file is made.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/pipeline/fuzz/decoded_box.h"
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/png_decoder.h"
#include "src/pipeline/testing/decoded_pixels.h"

namespace sluice::pipeline::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kPngPixelsMax = 1 << 18;

std::optional<Bytes> png_pixels(const Bytes& file, bool middle_only) {
  PngDecoder decoder;
  const auto size = size_to_decode(decoder.open(file), kPngPixelsMax);
  if (!size) return std::nullopt;
  const Box middle = middle_of(*size);
  const auto view = decoder.decode(middle_only ? middle : whole_of(*size));
  if (!view) return std::nullopt;
  const Bytes all = testing::pixels_of(*view);
  if (middle_only) return all;
  return testing::pixels_of({&all[static_cast<std::size_t>(middle.top * size->width + middle.left) * 3],
                             static_cast<std::size_t>(size->width) * 3,
                             {middle.height, middle.width}});
}

void check(const Bytes& file) {
  if (!is_png(file)) return;
  const auto whole = png_pixels(file, false);
  const auto part = png_pixels(file, true);
  // A colour that the palette lacks may be in the rest.
  FUZZ_CHECK(part.has_value() || !whole.has_value());
  FUZZ_CHECK(!whole.has_value() || *whole == *part);
}

void put_number(std::uint8_t* to, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0}) *to++ = static_cast<std::uint8_t>(number >> shift);
}

void mend_checksums(Bytes& file) {
  for (std::size_t at = 8; file.size() - at >= 12;) {
    const std::size_t bytes =
        std::size_t{file[at]} << 24 | std::size_t{file[at + 1]} << 16 | std::size_t{file[at + 2]} << 8 | file[at + 3];
    if (bytes > file.size() - at - 12) return;
    put_number(&file[at + 8 + bytes], crc32_of({&file[at + 4], bytes + 4}));
    at += bytes + 12;
  }
}

void append_chunk(Bytes& file, std::string_view type, const Bytes& data) {
  const std::size_t at = file.size();
  file.resize(at + 12 + data.size());
  put_number(&file[at], static_cast<std::uint32_t>(data.size()));
  std::memcpy(&file[at + 4], type.data(), 4);
  std::ranges::copy(data, file.begin() + static_cast<std::ptrdiff_t>(at) + 8);
  put_number(&file[at + 8 + data.size()], crc32_of({&file[at + 4], 4 + data.size()}));
}

// A zlib stream of stored blocks.
Bytes stored(std::span<const std::uint8_t> rows) {
  constexpr std::size_t kBlockBytes = 0xFFFF;
  constexpr std::uint32_t kAdlerModulus = 65521;
  Bytes stream{0x78, 0x01};
  std::uint32_t low = 1, high = 0;
  for (const std::uint8_t byte : rows) high = (high + (low = (low + byte) % kAdlerModulus)) % kAdlerModulus;
  do {
    const auto block = rows.first(std::min(rows.size(), kBlockBytes));
    rows = rows.subspan(block.size());
    const auto length = static_cast<std::uint16_t>(block.size());
    const auto complement = static_cast<std::uint16_t>(~length);
    stream.push_back(rows.empty() ? 1 : 0);
    for (const std::uint16_t number : {length, complement}) {
      stream.push_back(static_cast<std::uint8_t>(number));
      stream.push_back(static_cast<std::uint8_t>(number >> 8));
    }
    stream.insert(stream.end(), block.begin(), block.end());
  } while (!rows.empty());
  stream.resize(stream.size() + 4);
  put_number(&stream[stream.size() - 4], high << 16 | low);
  return stream;
}

// Three bytes say the kind and the size, the others are the rows; what is missing of them is zeros.
Bytes file_of_rows(std::string_view input) {
  constexpr std::array<std::uint8_t, 5> kColours{0, 2, 3, 4, 6};
  const auto number = [&](std::size_t at) { return static_cast<std::uint8_t>(input[at]); };
  PngFile kind;
  kind.depth_bits = 1 << (number(0) >> 4) % 5;
  kind.colour = static_cast<PngColour>(kColours[(number(0) & 0x7) % kColours.size()]);
  kind.size = {1 + number(1) % 64, 1 + number(2) % 64};
  const bool is_interlaced = (number(0) & 0x8) != 0;
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  append_chunk(file, "IHDR",
               {0, 0, 0, static_cast<std::uint8_t>(kind.size.width), 0, 0, 0,
                static_cast<std::uint8_t>(kind.size.height), static_cast<std::uint8_t>(kind.depth_bits),
                static_cast<std::uint8_t>(kind.colour), 0, 0, static_cast<std::uint8_t>(is_interlaced ? 1 : 0)});
  if (kind.colour == PngColour::kPalette) append_chunk(file, "PLTE", Bytes(number(2) % 200 * 3 + 3, 9));
  Bytes rows(input.begin() + 3, input.end());
  if (!is_interlaced) rows.resize(static_cast<std::size_t>(kind.size.height) * (1 + kind.row_bytes(kind.size.width)));
  append_chunk(file, "IDAT", stored(rows));
  append_chunk(file, "IEND", {});
  return file;
}

}  // namespace

void png(std::string_view input) {
  Bytes file(input.begin(), input.end());
  check(file);
  if (is_png(file)) {
    mend_checksums(file);
    check(file);
  }
  if (input.size() > 3) check(file_of_rows(input));
}

}  // namespace sluice::pipeline::fuzz
