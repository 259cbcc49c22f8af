#include "src/pipeline/image_decoder.h"

#include <array>
#include <string>
#include <string_view>

namespace sluice::pipeline {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view format;
  std::string_view bytes;
};

// Formats that image data sets hold, too, for a message that says more than what a file is not.
constexpr std::array kOtherFormats{Signature{"GIF", "GIF8"sv}, Signature{"RIFF", "RIFF"sv}, Signature{"BMP", "BM"sv},
                                   Signature{"TIFF", "II*\0"sv}, Signature{"TIFF", "MM\0*"sv}};

Error unknown_format(std::span<const std::uint8_t> file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Signature& signature : kOtherFormats) {
    if (!start.starts_with(signature.bytes)) continue;
    return invalid_argument("is a " + std::string(signature.format) +
                            " file; native pipelines decode JPEG, PNG and WebP only, so its batch needs the Python "
                            "pipeline");
  }
  return invalid_argument("is no JPEG, PNG or WebP file; native pipelines decode no others");
}

}  // namespace

Result<ImageSize> ImageDecoder::open(std::span<const std::uint8_t> file) {
  if (file.empty()) return Error(ErrorCode::kDataLoss, "the file is empty");
  if (is_png(file)) {
    format_ = Format::kPng;
    return png_.open(file);
  }
  if (is_webp(file)) {
    format_ = Format::kWebp;
    return webp_.open(file);
  }
  format_ = Format::kJpeg;
  return is_jpeg(file) ? jpeg_.open(file) : unknown_format(file);
}

Result<ImageSize> ImageDecoder::open_coefficients(std::span<const std::uint8_t> coded) {
  format_ = Format::kJpeg;
  return jpeg_.open_coefficients(coded);
}

bool ImageDecoder::is_rgb() const {
  switch (format_) {
    case Format::kPng: return png_.is_rgb();
    case Format::kWebp: return webp_.is_rgb();
    case Format::kJpeg: break;
  }
  return jpeg_.is_rgb();
}

Result<RgbView> ImageDecoder::decode(const Box& box) {
  switch (format_) {
    case Format::kPng: return png_.decode(box);
    case Format::kWebp: return webp_.decode(box);
    case Format::kJpeg: break;
  }
  return jpeg_.decode(box);
}

}  // namespace sluice::pipeline
