#include "src/pipeline/tensor_conversion.h"

#include <cassert>

namespace sluice::pipeline {
namespace {

// One pass over the pixels, three streams of output.
template <typename Element, typename Convert>
void to_planes(std::span<const std::uint8_t> pixels, Element* tensor, Convert convert) {
  const std::size_t plane = pixels.size() / 3;
  Element* const red = tensor;
  Element* const green = tensor + plane;
  Element* const blue = tensor + 2 * plane;
  const std::uint8_t* pixel = pixels.data();
  for (std::size_t i = 0; i < plane; ++i, pixel += 3) {
    red[i] = convert(0, pixel[0]);
    green[i] = convert(1, pixel[1]);
    blue[i] = convert(2, pixel[2]);
  }
}

}  // namespace

TensorConversion::TensorConversion(bool to_tensor, const std::optional<Normalize>& normalize) : to_tensor_(to_tensor) {
  for (std::size_t channel = 0; channel < table_.size(); ++channel) {
    for (std::size_t byte = 0; byte < table_[channel].size(); ++byte) {
      float value = static_cast<float>(byte) / 255.0F;
      if (normalize) {
        value -= static_cast<float>(normalize->mean[channel]);
        value /= static_cast<float>(normalize->std[channel]);
      }
      table_[channel][byte] = value;
    }
  }
}

void TensorConversion::apply(std::span<const std::uint8_t> pixels, std::span<std::byte> tensor) const {
  assert(tensor.size() == pixels.size() * element_bytes());
  if (to_tensor_) {
    to_planes(pixels, reinterpret_cast<float*>(tensor.data()),
              [this](std::size_t channel, std::uint8_t byte) { return table_[channel][byte]; });
  } else {
    to_planes(pixels, reinterpret_cast<std::uint8_t*>(tensor.data()),
              [](std::size_t, std::uint8_t byte) { return byte; });
  }
}

}  // namespace sluice::pipeline
