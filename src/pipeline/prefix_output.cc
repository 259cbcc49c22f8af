#include "src/pipeline/prefix_output.h"

namespace sluice::pipeline {
namespace {

constexpr std::size_t kSizeBytes = 8;

}  // namespace

std::size_t output_bytes(ImageSize size) { return bytes_of(size) + kSizeBytes; }

void append_output_size(ImageSize size, std::vector<std::uint8_t>& output) {
  for (const int side : {size.height, size.width})
    for (int shift = 0; shift < 32; shift += 8) output.push_back(static_cast<std::uint8_t>(side >> shift));
}

Result<ImageSize> take_output_size(std::vector<std::uint8_t>& output) {
  if (output.size() >= kSizeBytes && output.size() <= kOutputBytesMax) {
    const auto side_at = [&](std::size_t at) {
      std::uint32_t side = 0;
      for (std::size_t i = 0; i < 4; ++i) side |= std::uint32_t{output[at + i]} << (8 * i);
      return side;
    };
    const std::size_t pixel_bytes = output.size() - kSizeBytes;
    const std::uint64_t height = side_at(pixel_bytes);
    const std::uint64_t width = side_at(pixel_bytes + 4);
    const bool is_possible = height > 0 && width > 0 && height <= kOutputBytesMax && width <= kOutputBytesMax;
    if (is_possible && height * width * 3 == pixel_bytes) {
      output.resize(pixel_bytes);
      return ImageSize{static_cast<int>(height), static_cast<int>(width)};
    }
  }
  return Error(ErrorCode::kDataLoss, "is no output of a prefix");
}

}  // namespace sluice::pipeline
