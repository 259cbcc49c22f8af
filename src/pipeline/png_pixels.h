// The pixels of PNG rows as Pillow's convert("RGB") makes them: alpha is dropped, grey is replicated, of 16 bits the
// upper eight count, colours of a palette are looked up.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/pipeline/png_file.h"

namespace sluice::pipeline {

class PngPixels {
 public:
  explicit PngPixels(const PngFile& file);

  // Whether rows hold their pixels as red, green and blue already.
  bool is_rgb() const { return colour_ == PngColour::kRgb && depth_bits_ == 8; }

  // `count` pixels from `first` on of a row without filter.
  void to_rgb(const std::uint8_t* row, int first, int count, std::uint8_t* pixels);

  // Whether all pixels so far had a colour in the palette.
  bool has_all_colours() const { return largest_ < colours_; }

 private:
  void look_up(const std::uint8_t* row, int first, int count, std::uint8_t* pixels);

  PngColour colour_;
  int depth_bits_;
  std::size_t colours_ = 0;  // in the table
  std::size_t largest_ = 0;  // that was looked up
  std::array<std::array<std::uint8_t, 3>, 256> table_{};
};

}  // namespace sluice::pipeline
