// PNG files made in memory, of every kind: rows of random bytes behind any filter are pixels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/pipeline/geometry.h"
#include "src/pipeline/png_file.h"

namespace sluice::pipeline::testing {

struct PngChunk {
  std::string type;
  std::vector<std::uint8_t> data;
};

struct PngOptions {
  PngColour colour = PngColour::kRgb;
  int depth_bits = 8;
  bool is_interlaced = false;
  int filter = -1;              // of every row; -1: one after the other
  std::size_t chunk_bytes = 0;  // of the rows' chunks; 0: one chunk
  std::size_t colours = 256;    // in the palette, at most as many as the depth has
  std::vector<PngChunk> before_rows;
  std::vector<PngChunk> behind_rows;
};

// The rows of such an image with their filters, not compressed.
std::vector<std::uint8_t> png_rows(ImageSize size, const PngOptions& options, std::uint32_t seed);

std::vector<std::uint8_t> zlib_stream(const std::vector<std::uint8_t>& bytes);

// A file around any stream.
std::vector<std::uint8_t> png_around(ImageSize size, const PngOptions& options,
                                     const std::vector<std::uint8_t>& stream);

// A sound file.
std::vector<std::uint8_t> encode_png(ImageSize size, const PngOptions& options, std::uint32_t seed = 1);

}  // namespace sluice::pipeline::testing
