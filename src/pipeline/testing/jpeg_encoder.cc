#include "src/pipeline/testing/jpeg_encoder.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <jpeglib.h>

namespace sluice::pipeline::testing {
namespace {

std::vector<std::uint8_t> picture_row(ImageSize size, int y, const JpegOptions& options, std::mt19937& random) {
  std::vector<std::uint8_t> row;
  for (int x = 0; x < size.width; ++x) {
    for (int component = 0; component < options.components; ++component) {
      const double wave = 60 * std::sin(0.05 * x * (component + 1)) * std::cos(0.08 * y);
      const double edge = (x / 13 + y / 9) % 2 == 0 ? 50 : -30;
      const double noise =
          static_cast<double>(random() % static_cast<std::uint32_t>(2 * options.noise + 1)) - options.noise;
      row.push_back(static_cast<std::uint8_t>(std::min(255.0, std::max(0.0, 120 + wave + edge + noise))));
    }
  }
  return row;
}

void configure(jpeg_compress_struct& codec, ImageSize size, const JpegOptions& options) {
  codec.image_width = static_cast<JDIMENSION>(size.width);
  codec.image_height = static_cast<JDIMENSION>(size.height);
  codec.input_components = options.components;
  codec.in_color_space = options.components == 1 ? JCS_GRAYSCALE : options.components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&codec);
  if (options.ycck) jpeg_set_colorspace(&codec, JCS_YCCK);
  jpeg_set_quality(&codec, options.quality, TRUE);
  if (options.components > 1 && codec.jpeg_color_space != JCS_CMYK) {
    codec.comp_info[0].h_samp_factor = options.horizontal_sampling;
    codec.comp_info[0].v_samp_factor = options.vertical_sampling;
    if (options.ycck) {  // black is as fine as luma
      codec.comp_info[3].h_samp_factor = options.horizontal_sampling;
      codec.comp_info[3].v_samp_factor = options.vertical_sampling;
    }
  }
  codec.restart_in_rows = options.restart_interval_rows;
  codec.restart_interval = static_cast<unsigned int>(options.restart_interval_mcus);
  codec.optimize_coding = options.own_codes ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&codec);
}

}  // namespace

std::vector<std::uint8_t> encode_picture(ImageSize size, const JpegOptions& options) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);  // an error ends the test program, with libjpeg's message
  jpeg_create_compress(&codec);
  unsigned char* memory = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&codec, &memory, &bytes);
  configure(codec, size, options);
  jpeg_start_compress(&codec, TRUE);
  std::mt19937 random(static_cast<std::uint32_t>(size.height * 100003 + size.width));
  while (codec.next_scanline < codec.image_height) {
    std::vector<std::uint8_t> row = picture_row(size, static_cast<int>(codec.next_scanline), options, random);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&codec, &pointer, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  std::vector<std::uint8_t> file(memory, memory + bytes);
  std::free(memory);
  return file;
}

}  // namespace sluice::pipeline::testing
