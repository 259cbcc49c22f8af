#include "src/pipeline/webp_file.h"

#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::pipeline {
namespace {

using namespace std::string_view_literals;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kTypeBytes = 4;
constexpr std::size_t kChunkHeaderBytes = 8;  // its type and length
constexpr std::size_t kFormatEnd = 12;        // of "RIFF", a length, "WEBP"
constexpr std::size_t kFeatureBytes = 10;
constexpr std::uint8_t kAnimationFlag = 0x02;
constexpr std::uint8_t kAlphaFlag = 0x10;
constexpr std::array kMetadata{"ICCP"sv, "EXIF"sv, "XMP "sv};

Error damaged(const std::string& what) { return {ErrorCode::kDataLoss, "damaged or truncated WebP: " + what}; }
Error unusual(const std::string& what) {
  return invalid_argument("is a WebP with " + what + ", which only the Python pipeline reads");
}

std::uint32_t number_at(Bytes bytes, std::size_t at, std::size_t length) {
  std::uint32_t number = 0;
  for (std::size_t i = length; i-- > 0;) number = number << 8 | bytes[at + i];
  return number;
}

std::string_view text_at(Bytes bytes, std::size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, kTypeBytes};
}

struct Chunk {
  std::string_view type;
  Bytes data;
  Bytes all;  // with its header, and the byte that makes its length even
};

// Takes the next chunk off `rest`; nothing if it is cut off.
std::optional<Chunk> take_chunk(Bytes& rest) {
  if (rest.size() < kChunkHeaderBytes) return std::nullopt;
  const std::size_t bytes = number_at(rest, kTypeBytes, 4);
  const std::size_t padded = bytes + bytes % 2;
  if (padded > rest.size() - kChunkHeaderBytes) return std::nullopt;
  const Chunk chunk{text_at(rest, 0), rest.subspan(kChunkHeaderBytes, bytes), rest.first(kChunkHeaderBytes + padded)};
  rest = rest.subspan(chunk.all.size());
  return chunk;
}

bool is_image(std::string_view type) { return type == "VP8 " || type == "VP8L"; }

// Reads what libwebp says of the image's own header.
Result<void> read_image_header(WebpFile& file) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(file.image.data(), file.image.size(), &features) != VP8_STATUS_OK) {
    return damaged("no header of the image");
  }
  file.size = {features.height, features.width};
  file.may_have_alpha = file.may_have_alpha || features.has_alpha != 0;
  if (features.width > kMaxImagePixels / features.height) {
    return invalid_argument("has " + std::to_string(features.width) + "x" + std::to_string(features.height) +
                            " pixels, more than Pillow accepts (decompression bomb)");
  }
  return {};
}

// The image among the chunks of a file with features; `rest` is what follows those.
Result<void> find_image(Bytes rest, bool may_have_alpha, WebpFile& file) {
  while (!rest.empty()) {
    const std::uint8_t* const start = rest.data();
    auto chunk = take_chunk(rest);
    if (!chunk) return damaged("a chunk is cut off");
    if (std::ranges::find(kMetadata, chunk->type) != kMetadata.end()) continue;
    const bool is_alpha = chunk->type == "ALPH";
    if (!is_alpha && !is_image(chunk->type)) return unusual("a chunk " + std::string(chunk->type));
    if (!file.image.empty()) return damaged("it has two images");
    if (is_alpha) {
      if (!may_have_alpha) return unusual("an alpha plane that its header does not announce");
      chunk = take_chunk(rest);
      if (!chunk || chunk->type != "VP8 ") return damaged("no image behind its alpha plane");
    }
    file.has_alpha_plane = is_alpha;
    file.is_lossless = chunk->type == "VP8L";
    file.image = {start, rest.data()};
  }
  if (file.image.empty()) return damaged("no image");
  return {};
}

}  // namespace

bool is_webp(Bytes file) {
  if (file.size() < kFormatEnd + kTypeBytes || text_at(file, 0) != "RIFF" || text_at(file, 8) != "WEBP") return false;
  const std::string_view type = text_at(file, kFormatEnd);
  return is_image(type) || type == "VP8X";
}

Result<WebpFile> read_webp(Bytes bytes) {
  if (number_at(bytes, kTypeBytes, 4) != bytes.size() - kChunkHeaderBytes) return damaged("its length");
  Bytes rest = bytes.subspan(kFormatEnd);
  const auto first = take_chunk(rest);
  if (!first) return damaged("a chunk is cut off");
  WebpFile file;
  if (is_image(first->type)) {
    if (!rest.empty()) return unusual("more behind its image");
    file.is_lossless = first->type == "VP8L";
    file.image = first->all;
    SLUICE_TRY_VOID(read_image_header(file));
    return file;
  }
  if (first->data.size() != kFeatureBytes) return damaged("its features");
  const std::uint8_t flags = first->data[0];
  if ((flags & kAnimationFlag) != 0) return unusual("an animation");
  file.may_have_alpha = (flags & kAlphaFlag) != 0;
  SLUICE_TRY_VOID(find_image(rest, file.may_have_alpha, file));
  SLUICE_TRY_VOID(read_image_header(file));
  const ImageSize canvas{static_cast<int>(number_at(first->data, 7, 3)) + 1,
                         static_cast<int>(number_at(first->data, 4, 3)) + 1};
  if (file.size != canvas) return damaged("its image has another size than it says");
  return file;
}

}  // namespace sluice::pipeline
