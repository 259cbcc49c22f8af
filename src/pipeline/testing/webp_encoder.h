// WebP files made in memory, of every kind: libwebp's encoder on a picture of waves, and any chunks around it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/pipeline/geometry.h"

namespace sluice::pipeline::testing {

struct WebpOptions {
  bool is_lossless = false;
  bool has_alpha = false;
  float quality = 75;
};

struct WebpChunk {
  std::string type;
  std::vector<std::uint8_t> data;
};

// As libwebp writes it.
std::vector<std::uint8_t> encode_webp(ImageSize size, const WebpOptions& options);

// A file of any chunks.
std::vector<std::uint8_t> webp_of(const std::vector<WebpChunk>& chunks);

// The chunks of a sound file.
std::vector<WebpChunk> webp_chunks(const std::vector<std::uint8_t>& file);

// The chunk VP8X: what is in the file, and the image's size.
WebpChunk webp_features(ImageSize size, std::uint8_t flags);

}  // namespace sluice::pipeline::testing
