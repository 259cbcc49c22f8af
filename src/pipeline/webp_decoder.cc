#include "src/pipeline/webp_decoder.h"

#include <webp/decode.h>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kRgbBytes = 3;
// What libwebp makes of one pixel before that is RGB: a colour with alpha; for a plane of alpha such a colour, too, and
// what it becomes. A lossy image passes through a few rows.
constexpr std::size_t kLosslessBytes = 4;
constexpr std::size_t kAlphaPlaneBytes = 5;

std::size_t bytes_per_pixel(const WebpFile& file) {
  return kRgbBytes + (file.is_lossless ? kLosslessBytes : 0) + (file.has_alpha_plane ? kAlphaPlaneBytes : 0);
}

}  // namespace

Result<ImageSize> WebpDecoder::open(std::span<const std::uint8_t> file) {
  SLUICE_TRY(file_, read_webp(file));
  const auto pixels = static_cast<std::size_t>(file_.size.height) * static_cast<std::size_t>(file_.size.width);
  if (pixels * bytes_per_pixel(file_) > kMaxWorkingBytes) {
    return invalid_argument("has more bytes of pixels than native pipelines decode");
  }
  return file_.size;
}

Result<RgbView> WebpDecoder::decode(const Box& box) {
  const std::size_t stride = static_cast<std::size_t>(file_.size.width) * kRgbBytes;
  const std::size_t bytes = stride * static_cast<std::size_t>(file_.size.height);
  if (pixels_.size() < bytes + kReadableBytesBehindPixels) pixels_.resize(bytes + kReadableBytesBehindPixels);
  if (WebPDecodeRGBInto(file_.image.data(), file_.image.size(), pixels_.data(), bytes, static_cast<int>(stride)) ==
      nullptr) {
    return Error(ErrorCode::kDataLoss, "damaged or truncated WebP: its pixels");
  }
  const std::size_t offset =
      static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left) * kRgbBytes;
  return RgbView{pixels_.data() + offset, stride, {box.height, box.width}};
}

}  // namespace sluice::pipeline
