// What PNG files say beside the pixels: text, colour profiles, gamma. Pillow reads all of it, and refuses a file for
// some of it. None of it changes pixels.
//
// Thread safety: none; one for each file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/pipeline/inflate.h"

namespace sluice::pipeline {

class PngMetadata {
 public:
  // REQUIRES: both outlive this, and no other code uses them meanwhile. `scratch` gets a megabyte if a chunk is
  // compressed.
  PngMetadata(Inflater& inflater, std::vector<std::uint8_t>& scratch) : inflater_(inflater), scratch_(scratch) {}

  // Whether Pillow surely takes the chunk, and makes the same pixels as without it. False for all that is not an
  // ancillary chunk of a still image.
  bool is_harmless(std::string_view type, std::span<const std::uint8_t> data);

 private:
  bool is_harmless_text(std::string_view type, std::span<const std::uint8_t> data);
  bool is_too_large(std::span<const std::uint8_t> compressed);

  Inflater& inflater_;
  std::vector<std::uint8_t>& scratch_;
  std::size_t text_bytes_ = 0;
};

}  // namespace sluice::pipeline
