// torchvision's Resize, v1 and v2: to [height, width], or the shorter side to [side], the longer at most max_size.
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

class Resize final : public Op {
 public:
  Resize(std::vector<int> sides, std::optional<int> max_size, Interpolation interpolation)
      : sides_(std::move(sides)), max_size_(max_size), interpolation_(interpolation) {}

  bool draws() const override { return false; }
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override {
    if (sides_.size() == 1 && !input.size) return {input.kind, {}, input.channels};
    return {input.kind, resized(input.size.value_or(ImageSize{})), input.channels};
  }

  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override {
    const ImageSize size = resized(image.size());
    if (size.height > 0 && size.width > 0) return image.resize(size, interpolation_);
    return invalid_argument("resize leaves nothing of an image of " + std::to_string(image.size().height) + "x" +
                            std::to_string(image.size().width));
  }

 private:
  ImageSize resized(ImageSize image) const {
    return sides_.size() == 1 ? shorter_side_resized(image, sides_[0], max_size_) : ImageSize{sides_[0], sides_[1]};
  }

  std::vector<int> sides_;
  std::optional<int> max_size_;
  Interpolation interpolation_;
};

}  // namespace

OpPointer parse_resize(JsonReader& reader) {
  const std::vector<int> sides = read_sides(reader);
  std::optional<int> max_size;
  if (reader.find("max_size") != nullptr) {
    if (sides.size() == 2) reader.fail("max_size", "goes with one side only");
    reader.required("max_size", max_size.emplace(), sides[0] + 1, 2 * kMaxSidePixels);
  }
  return std::make_unique<Resize>(sides, max_size, read_interpolation(reader));
}

}  // namespace sluice::pipeline
