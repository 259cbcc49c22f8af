#include "src/pipeline/tensor_conversion.h"

#include <algorithm>
#include <cassert>

namespace sluice::pipeline {
namespace {

// One pass over the pixels, three streams of output.
template <typename Element, typename Convert>
void to_planes(std::span<const std::uint8_t> pixels, int channels, Element* tensor, Convert convert) {
  if (channels == 1) {
    std::transform(pixels.begin(), pixels.end(), tensor, [&](std::uint8_t byte) { return convert(0, byte); });
    return;
  }
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

TensorConversion::TensorConversion(std::span<const Op* const> ops, ImageSize size, int channels)
    : size_(size), channels_(channels), makes_floats_(!ops.empty()) {
  std::array<float, 3 * 256> every_byte{};
  for (std::size_t i = 0; i < every_byte.size(); ++i) every_byte[i] = static_cast<float>(i % 256);
  std::size_t fused = 0;
  for (; fused < ops.size() && ops[fused]->is_pointwise(); ++fused) ops[fused]->change(every_byte, {1, 256}, {});
  behind_table_.assign(ops.begin() + static_cast<std::ptrdiff_t>(fused), ops.end());
  for (std::size_t channel = 0; channel < table_.size(); ++channel)
    std::copy_n(every_byte.begin() + static_cast<std::ptrdiff_t>(channel * 256), 256, table_[channel].begin());
}

std::size_t TensorConversion::drawn_bytes() const {
  std::size_t bytes = 0;
  for (const Op* op : behind_table_) bytes += op->drawn_bytes();
  return bytes;
}

void TensorConversion::draw(TorchRandom& random, std::span<std::uint8_t> drawn) const {
  for (const Op* op : behind_table_) {
    op->draw(size_, random, drawn.first(op->drawn_bytes()));
    drawn = drawn.subspan(op->drawn_bytes());
  }
}

void TensorConversion::apply(std::span<const std::uint8_t> pixels, std::span<const std::uint8_t> drawn,
                             std::span<std::byte> tensor) const {
  assert(tensor.size() == pixels.size() * element_bytes());
  if (!makes_floats_) {
    to_planes(pixels, channels_, reinterpret_cast<std::uint8_t*>(tensor.data()),
              [](std::size_t, std::uint8_t byte) { return byte; });
    return;
  }
  const std::span floats(reinterpret_cast<float*>(tensor.data()), pixels.size());
  to_planes(pixels, channels_, floats.data(),
            [this](std::size_t channel, std::uint8_t byte) { return table_[channel][byte]; });
  for (const Op* op : behind_table_) {
    op->change(floats, size_, drawn.first(op->drawn_bytes()));
    drawn = drawn.subspan(op->drawn_bytes());
  }
}

}  // namespace sluice::pipeline
