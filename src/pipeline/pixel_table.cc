#include "src/pipeline/pixel_table.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::size_t kBytesOfLabel = sizeof(std::int64_t);

bool is_order_of_axes(std::string axes) {
  std::sort(axes.begin(), axes.end());
  return axes == "chw";
}

}  // namespace

Result<PixelTable> PixelTable::parse(std::string bytes, const PixelShape& shape) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return parse(view, shape, std::move(owner));
}

Result<PixelTable> PixelTable::parse(std::string_view bytes, const PixelShape& shape,
                                     std::shared_ptr<const void> owner) {
  if (!is_order_of_axes(shape.axes)) return invalid_argument("the axes \"" + shape.axes + "\" are not h, w and c");
  PixelTable table;
  table.owner_ = std::move(owner);
  table.bytes_ = bytes;
  table.samples_ = shape.samples;
  table.image_size_ = shape.size;
  table.channels_ = shape.channels;
  std::size_t step = 1;
  for (auto axis = shape.axes.rbegin(); axis != shape.axes.rend(); ++axis) {
    const auto [to, length] = *axis == 'h'   ? std::pair{&table.row_step_, shape.size.height}
                              : *axis == 'w' ? std::pair{&table.pixel_step_, shape.size.width}
                                             : std::pair{&table.channel_step_, shape.channels};
    *to = step;
    step *= static_cast<std::size_t>(length);
  }
  table.sample_bytes_ = step;
  if (shape.channels == 1) table.channel_step_ = 0;
  // A quotient, as a product could overflow.
  const std::size_t bytes_each = kBytesOfLabel + step;
  if (bytes.size() % bytes_each != 0 || bytes.size() / bytes_each != shape.samples)
    return invalid_argument("the table of pixels has " + std::to_string(bytes.size()) +
                            " bytes, which are not those of " + std::to_string(shape.samples) + " samples");
  return table;
}

std::int64_t PixelTable::label(std::size_t index) const {
  assert(index < samples_);
  std::int64_t label = 0;
  std::memcpy(&label, bytes_.data() + index * kBytesOfLabel,
              sizeof(label));  // not aligned: a specification comes before
  return label;
}

void PixelTable::copy_rgb(std::size_t index, std::span<std::uint8_t> rgb) const {
  assert(index < samples_ && rgb.size() == bytes_of(image_size_));
  const auto* sample =
      reinterpret_cast<const std::uint8_t*>(bytes_.data()) + samples_ * kBytesOfLabel + index * sample_bytes_;
  if (channel_step_ == 1 && pixel_step_ == 3 && row_step_ == bytes_of({1, image_size_.width})) {
    std::memcpy(rgb.data(), sample, rgb.size());
    return;
  }
  std::uint8_t* out = rgb.data();
  const std::size_t pixel_step = pixel_step_, channel_step = channel_step_;  // the bytes written could be the table's
  for (int y = 0; y < image_size_.height; ++y, sample += row_step_) {
    const std::uint8_t* pixel = sample;
    for (int x = 0; x < image_size_.width; ++x, pixel += pixel_step, out += 3) {
      out[0] = pixel[0];
      out[1] = pixel[channel_step];
      out[2] = pixel[2 * channel_step];
    }
  }
}

}  // namespace sluice::pipeline
