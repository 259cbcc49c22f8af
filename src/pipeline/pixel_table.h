// The samples of a data set that holds its images in memory, all of one size: their labels and their pixels, as the
// client sends them (docs/designs/protocols.md, section 5).
//
// Memory: the bytes, if no other has them.
//
// Layout, little-endian: an i64 label for each sample, then for each its pixels, a byte for each channel. Data sets
// keep the axes of an image in one order or another, and the bytes are as they have them: "hwc" says that the channels
// of a pixel follow each other, then pixels of a row, then rows.
//
// Thread safety: immutable after parse().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"

namespace sluice::pipeline {

struct PixelShape {
  std::uint64_t samples = 0;
  ImageSize size;            // sides from 1 to kMaxSidePixels
  int channels = 3;          // or 1: grey
  std::string axes = "hwc";  // in the order of memory, the last one the fastest
};

class PixelTable {
 public:
  PixelTable() = default;  // of no samples

  // InvalidArgument for axes that are no order of h, w and c, and bytes that are not those of the shape.
  static Result<PixelTable> parse(std::string bytes, const PixelShape& shape);
  // The same over bytes that stay what and where they are as long as `owner` is there.
  static Result<PixelTable> parse(std::string_view bytes, const PixelShape& shape, std::shared_ptr<const void> owner);

  std::size_t size() const { return samples_; }
  ImageSize image_size() const { return image_size_; }
  int channels() const { return channels_; }

  // REQUIRES: index < size()
  std::int64_t label(std::size_t index) const;

  // Writes the pixels [height][width][3] of a sample; those of a grey one have three equal channels.
  // REQUIRES: index < size(), and rgb has 3 bytes for each pixel
  void copy_rgb(std::size_t index, std::span<std::uint8_t> rgb) const;

 private:
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
  std::size_t samples_ = 0;
  ImageSize image_size_;
  int channels_ = 3;
  std::size_t sample_bytes_ = 0;
  std::size_t row_step_ = 0, pixel_step_ = 0, channel_step_ = 0;  // bytes; between channels 0 where there is but one
};

}  // namespace sluice::pipeline
