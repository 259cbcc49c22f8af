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
constexpr std::array kOtherFormats{Signature{"GIF", "GIF8"sv}, Signature{"WebP or another RIFF", "RIFF"sv},
                                   Signature{"BMP", "BM"sv}, Signature{"TIFF", "II*\0"sv},
                                   Signature{"TIFF", "MM\0*"sv}};

Error unknown_format(std::span<const std::uint8_t> file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Signature& signature : kOtherFormats) {
    if (!start.starts_with(signature.bytes)) continue;
    return invalid_argument("is a " + std::string(signature.format) +
                            " file; native pipelines decode JPEG and PNG only, so its batch needs the Python pipeline");
  }
  return invalid_argument("is neither a JPEG nor a PNG file; native pipelines decode no others");
}

}  // namespace

Result<ImageSize> ImageDecoder::open(std::span<const std::uint8_t> file) {
  if (file.empty()) return Error(ErrorCode::kDataLoss, "the file is empty");
  is_png_ = is_png(file);
  if (is_png_) return png_.open(file);
  return is_jpeg(file) ? jpeg_.open(file) : unknown_format(file);
}

Result<ImageSize> ImageDecoder::open_coefficients(std::span<const std::uint8_t> coded) {
  is_png_ = false;
  return jpeg_.open_coefficients(coded);
}

}  // namespace sluice::pipeline
