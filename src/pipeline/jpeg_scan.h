// What libjpeg has read of a file's headers, for BaselineJpegDecoder.
#pragma once

#include "src/pipeline/jpeg_baseline_decoder.h"

struct jpeg_decompress_struct;

namespace sluice::pipeline {

// Fills in `frame`. False if the image is not of a kind that JpegPixels takes, or libjpeg has warned. Its chroma may be
// narrow. REQUIRES: jpeg_read_header() has succeeded
bool read_frame(const jpeg_decompress_struct& codec, JpegFrame& frame);

// Fills in `scan`. False if the image is not of the kind that BaselineJpegDecoder takes, or libjpeg has warned.
// REQUIRES: jpeg_read_header() has succeeded, and the data lie in memory to their end
bool read_baseline_scan(const jpeg_decompress_struct& codec, JpegScan& scan);

}  // namespace sluice::pipeline
