// The structure of a PNG file (W3C, Portable Network Graphics, third edition): its header, its palette and its
// compressed rows.
//
// A file is taken only if Pillow surely opens it and makes the usual image of it. Damage, animations and rare kinds are
// refused: Pillow has to see to them. Pillow checks no checksum of the rows' chunks, and so neither does this; the zlib
// stream in them has one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/png_metadata.h"

namespace sluice::pipeline {

enum class PngColour : std::uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

struct PngFile {
  ImageSize size;
  PngColour colour = PngColour::kRgb;
  int depth_bits = 8;  // of one sample
  bool is_interlaced = false;
  std::span<const std::uint8_t> palette;  // red, green, blue; not empty for kPalette
  std::span<const std::uint8_t> stream;   // the rows, each behind the number of its filter, as one zlib stream

  int samples_per_pixel() const;
  std::size_t row_bytes(int width) const;  // without the filter's number
  // From one pixel to the next; 1 where a byte holds several pixels.
  std::size_t filter_distance_bytes() const;
};

// By its first bytes, as PIL tells it.
bool is_png(std::span<const std::uint8_t> file);

// What `file` holds. It points into `file`, and into `gathered` where the rows lie in several chunks.
// InvalidArgument: a rare kind, or more than kMaxImagePixels pixels; DataLoss: damaged.
// REQUIRES: is_png(file)
Result<PngFile> read_png(std::span<const std::uint8_t> file, PngMetadata metadata, std::vector<std::uint8_t>& gathered);

}  // namespace sluice::pipeline
