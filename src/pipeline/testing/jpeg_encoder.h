// JPEG files made in memory, in the varieties that cameras and programs write.
#pragma once

#include <cstdint>
#include <vector>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline::testing {

struct JpegOptions {
  int components = 3;           // 1 grey, 3 YCbCr, 4 CMYK as Adobe writes it
  int horizontal_sampling = 2;  // of luma against chroma; 2 and 2 is 4:2:0
  int vertical_sampling = 2;
  int quality = 90;
  bool progressive = false;
  int restart_interval_rows = 0;
  int restart_interval_mcus = 0;  // without the other
  bool own_codes = false;         // Huffman codes made for the picture
  int noise = 15;                 // the most that a sample is off
  bool ycck = false;              // with 4 components
};

// A picture of waves, edges and noise that depends on nothing but its size.
std::vector<std::uint8_t> encode_picture(ImageSize size, const JpegOptions& options);

}  // namespace sluice::pipeline::testing
