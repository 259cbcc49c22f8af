#include "src/pipeline/testing/png_encoder.h"

#include <algorithm>
#include <array>
#include <random>

#include <libdeflate.h>

namespace sluice::pipeline::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_number(Bytes& to, std::size_t number) {
  for (const int shift : {24, 16, 8, 0}) to.push_back(static_cast<std::uint8_t>(number >> shift));
}

void append_chunk(Bytes& to, std::string_view type, const Bytes& data) {
  append_number(to, data.size());
  const std::size_t begin = to.size();
  to.insert(to.end(), type.begin(), type.end());
  to.insert(to.end(), data.begin(), data.end());
  append_number(to, libdeflate_crc32(0, to.data() + begin, to.size() - begin));
}

Bytes header(ImageSize size, const PngOptions& options) {
  Bytes data;
  append_number(data, static_cast<std::size_t>(size.width));
  append_number(data, static_cast<std::size_t>(size.height));
  data.push_back(static_cast<std::uint8_t>(options.depth_bits));
  data.push_back(static_cast<std::uint8_t>(options.colour));
  data.insert(data.end(), {0, 0, static_cast<std::uint8_t>(options.is_interlaced ? 1 : 0)});
  return data;
}

Bytes palette(const PngOptions& options) {
  Bytes data;
  for (std::size_t i = 0; i < std::min(options.colours, std::size_t{1} << options.depth_bits); ++i) {
    for (const std::size_t step : {7, 31, 101}) data.push_back(static_cast<std::uint8_t>(i * step + 3));
  }
  return data;
}

}  // namespace

Bytes png_rows(ImageSize size, const PngOptions& options, std::uint32_t seed) {
  constexpr std::array<std::array<int, 4>, 8> kPasses{
      {{0, 0, 1, 1}, {0, 0, 8, 8}, {0, 4, 8, 8}, {4, 0, 8, 4}, {0, 2, 4, 4}, {2, 0, 4, 2}, {0, 1, 2, 2}, {1, 0, 2, 1}}};
  PngFile file;
  file.colour = options.colour;
  file.depth_bits = options.depth_bits;
  std::mt19937 random(seed);
  Bytes rows;
  for (std::size_t pass = options.is_interlaced ? 1 : 0; pass < (options.is_interlaced ? 8U : 1U); ++pass) {
    const auto& [top, left, down, right] = kPasses[pass];
    const int width = (size.width - left + right - 1) / right;
    if (width <= 0) continue;
    for (int y = top, number = 0; y < size.height; y += down, ++number) {
      rows.push_back(static_cast<std::uint8_t>(options.filter < 0 ? number % 5 : options.filter));
      for (std::size_t i = 0; i < file.row_bytes(width); ++i) rows.push_back(static_cast<std::uint8_t>(random()));
    }
  }
  return rows;
}

Bytes zlib_stream(const Bytes& bytes) {
  constexpr int kLevel = 6;
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(kLevel);
  Bytes stream(libdeflate_zlib_compress_bound(compressor, bytes.size()));
  stream.resize(libdeflate_zlib_compress(compressor, bytes.data(), bytes.size(), stream.data(), stream.size()));
  libdeflate_free_compressor(compressor);
  return stream;
}

Bytes png_around(ImageSize size, const PngOptions& options, const Bytes& stream) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  append_chunk(file, "IHDR", header(size, options));
  if (options.colour == PngColour::kPalette) append_chunk(file, "PLTE", palette(options));
  for (const PngChunk& chunk : options.before_rows) append_chunk(file, chunk.type, chunk.data);
  const std::size_t step = options.chunk_bytes == 0 ? stream.size() : options.chunk_bytes;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(at);
    append_chunk(file, "IDAT", Bytes(begin, begin + static_cast<std::ptrdiff_t>(std::min(step, stream.size() - at))));
  }
  for (const PngChunk& chunk : options.behind_rows) append_chunk(file, chunk.type, chunk.data);
  append_chunk(file, "IEND", {});
  return file;
}

Bytes encode_png(ImageSize size, const PngOptions& options, std::uint32_t seed) {
  return png_around(size, options, zlib_stream(png_rows(size, options, seed)));
}

}  // namespace sluice::pipeline::testing
