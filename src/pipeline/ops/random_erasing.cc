// torchvision's RandomErasing of a colour, v1 and v2. Its draws follow those of the image's operations, so they are
// made with the image; the tensor is erased where the batch is put together. On the wire: the box as 4 uint16.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

struct WireBox {
  std::uint16_t top = 0;
  std::uint16_t left = 0;
  std::uint16_t height = 0;
  std::uint16_t width = 0;
};

class RandomErasing final : public Op {
 public:
  RandomErasing(double probability, std::array<double, 2> scale, const AspectRange& aspect, std::array<double, 3> value)
      : probability_(probability), scale_(scale), aspect_(aspect), value_(value) {}

  ValueKind takes() const override { return ValueKind::kTensor; }
  ValueType result_of(const ValueType& input) const override { return input; }
  std::size_t drawn_bytes() const override { return sizeof(WireBox); }

  void draw(ImageSize size, TorchRandom& random, std::span<std::uint8_t> drawn) const override {
    WireBox box;
    if (random.chance(probability_)) box = draw_box(size, random);
    std::memcpy(drawn.data(), &box, sizeof(box));
  }

  using Op::change;
  void change(std::span<float> planes, ImageSize size, std::span<const std::uint8_t> drawn) const override {
    WireBox box;
    std::memcpy(&box, drawn.data(), sizeof(box));
    if (box.top + box.height > size.height || box.left + box.width > size.width) return;  // bytes of a broken worker
    const auto width = static_cast<std::size_t>(size.width);
    const std::size_t plane = bytes_of(size) / 3;
    for (std::size_t channel = 0; channel * plane < planes.size(); ++channel) {
      float* row = &planes[channel * plane] + box.top * width + box.left;
      for (int y = 0; y < box.height; ++y, row += width)
        std::fill_n(row, box.width, static_cast<float>(value_[channel]));
    }
  }

 private:
  // Ten attempts at a box of random area and aspect, then none.
  WireBox draw_box(ImageSize size, TorchRandom& random) const {
    constexpr int kAttempts = 10;
    const double area = static_cast<double>(size.height) * size.width;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double erased = area * random.uniform(static_cast<float>(scale_[0]), static_cast<float>(scale_[1]));
      const float log_aspect = random.uniform(aspect_.log_ratio[0], aspect_.log_ratio[1]);
      const double aspect = static_cast<float>(std::exp(static_cast<double>(log_aspect)));
      const double height = std::nearbyint(std::sqrt(erased * aspect));
      const double width = std::nearbyint(std::sqrt(erased / aspect));
      if (!(height < size.height && width < size.width)) continue;
      const auto top = random.randint(0, size.height - static_cast<int>(height) + 1);
      const auto left = random.randint(0, size.width - static_cast<int>(width) + 1);
      return {static_cast<std::uint16_t>(top), static_cast<std::uint16_t>(left), static_cast<std::uint16_t>(height),
              static_cast<std::uint16_t>(width)};
    }
    return {};
  }

  double probability_;
  std::array<double, 2> scale_;
  AspectRange aspect_;
  std::array<double, 3> value_;
};

}  // namespace

OpPointer parse_random_erasing(JsonReader& reader) {
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  std::array<double, 2> scale{};
  reader.required("scale", scale);
  if (!(scale[0] >= 0 && scale[0] <= scale[1] && scale[1] <= 1))
    reader.fail("scale", "must be two rising numbers from 0 to 1");
  const AspectRange aspect = read_aspect(reader);
  std::array<double, 3> value{};
  reader.required("value", value);
  for (const double level : value) {
    if (!(std::abs(level) <= std::numeric_limits<float>::max())) reader.fail("value", "must fit into float32");
  }
  return std::make_unique<RandomErasing>(probability, scale, aspect, value);
}

}  // namespace sluice::pipeline
