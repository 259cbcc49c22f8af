#include "src/pipeline/testing/webp_encoder.h"

#include <webp/encode.h>

#include <cmath>
#include <stdexcept>

namespace sluice::pipeline::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes picture(ImageSize size) {
  Bytes pixels;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      for (int channel = 0; channel < 4; ++channel) {
        const double wave =
            std::sin(x / (3.0 + channel)) + std::cos(y / (5.0 - channel)) + ((x * 7 + y * 13) % 5) / 5.0;
        pixels.push_back(static_cast<std::uint8_t>(100 + wave * 40));
      }
    }
  }
  return pixels;
}

void put_number(Bytes& file, std::uint32_t number, int bytes) {
  for (int i = 0; i < bytes; ++i, number >>= 8) file.push_back(static_cast<std::uint8_t>(number));
}

}  // namespace

Bytes encode_webp(ImageSize size, const WebpOptions& options) {
  WebPConfig config;
  WebPPicture picture_of_webp;
  WebPMemoryWriter written;
  if (WebPConfigInit(&config) == 0 || WebPPictureInit(&picture_of_webp) == 0)
    throw std::runtime_error("another libwebp");
  WebPMemoryWriterInit(&written);
  config.quality = options.quality;
  config.method = 1;
  config.lossless = options.is_lossless ? 1 : 0;
  picture_of_webp.use_argb = config.lossless;
  picture_of_webp.width = size.width;
  picture_of_webp.height = size.height;
  picture_of_webp.writer = WebPMemoryWrite;
  picture_of_webp.custom_ptr = &written;
  const Bytes pixels = picture(size);
  const auto import = options.has_alpha ? WebPPictureImportRGBA : WebPPictureImportRGBX;
  const bool done =
      import(&picture_of_webp, pixels.data(), size.width * 4) != 0 && WebPEncode(&config, &picture_of_webp) != 0;
  Bytes file(written.mem, written.mem + written.size);
  WebPPictureFree(&picture_of_webp);
  WebPMemoryWriterClear(&written);
  if (!done) throw std::runtime_error("libwebp encodes no such picture");
  return file;
}

Bytes webp_of(const std::vector<WebpChunk>& chunks) {
  Bytes body{'W', 'E', 'B', 'P'};
  for (const WebpChunk& chunk : chunks) {
    body.insert(body.end(), chunk.type.begin(), chunk.type.end());
    put_number(body, static_cast<std::uint32_t>(chunk.data.size()), 4);
    body.insert(body.end(), chunk.data.begin(), chunk.data.end());
    if (chunk.data.size() % 2 != 0) body.push_back(0);
  }
  Bytes file{'R', 'I', 'F', 'F'};
  put_number(file, static_cast<std::uint32_t>(body.size()), 4);
  file.insert(file.end(), body.begin(), body.end());
  return file;
}

std::vector<WebpChunk> webp_chunks(const Bytes& file) {
  std::vector<WebpChunk> chunks;
  for (std::size_t at = 12; at < file.size();) {
    const std::size_t bytes = file[at + 4] | file[at + 5] << 8 | file[at + 6] << 16;
    chunks.push_back({std::string(&file[at], &file[at] + 4), Bytes(&file[at] + 8, &file[at] + 8 + bytes)});
    at += 8 + bytes + bytes % 2;
  }
  return chunks;
}

WebpChunk webp_features(ImageSize size, std::uint8_t flags) {
  WebpChunk chunk{"VP8X", {flags, 0, 0, 0}};
  put_number(chunk.data, static_cast<std::uint32_t>(size.width - 1), 3);
  put_number(chunk.data, static_cast<std::uint32_t>(size.height - 1), 3);
  return chunk;
}

}  // namespace sluice::pipeline::testing
