// torchvision's Pad, v1 and v2: a border of a colour, or of the image's own pixels.
#include <cmath>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

class Pad final : public Op {
 public:
  explicit Pad(const Padding& padding) : padding_(padding) {}

  bool draws() const override { return false; }
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override {
    if (!input.size) return input;
    return {input.kind,
            ImageSize{input.size->height + padding_.top + padding_.bottom,
                      input.size->width + padding_.left + padding_.right},
            input.channels};
  }

  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override { return image.pad(padding_); }

 private:
  Padding padding_;
};

}  // namespace

OpPointer parse_pad(JsonReader& reader) {
  std::array<double, 4> widths{};
  reader.required("padding", widths);
  for (const double width : widths) {
    if (!(width >= 0 && width <= kMaxSidePixels && width == std::floor(width)))
      reader.fail("padding", "must be 4 whole numbers from 0 to " + std::to_string(kMaxSidePixels));
  }
  Padding padding;
  read_border(reader, padding);
  if (reader.error()) return std::make_unique<Pad>(padding);
  padding.left = static_cast<int>(widths[0]);
  padding.top = static_cast<int>(widths[1]);
  padding.right = static_cast<int>(widths[2]);
  padding.bottom = static_cast<int>(widths[3]);
  return std::make_unique<Pad>(padding);
}

}  // namespace sluice::pipeline
