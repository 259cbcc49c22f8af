// torchvision's RandomResizedCrop, v1 and v2.
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

class RandomResizedCropOp final : public Op {
 public:
  explicit RandomResizedCropOp(const RandomResizedCrop& crop) : crop_(crop) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return {input.kind, crop_.size, input.channels}; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const ImageSize size = image.size();
    const Box box = random_resized_crop_box(crop_, size, random);
    if (box.height <= 0 || box.width <= 0) {
      return invalid_argument("random_resized_crop leaves nothing of an image of " + std::to_string(size.height) + "x" +
                              std::to_string(size.width));
    }
    image.crop(box);
    return image.resize(crop_.size, crop_.interpolation);
  }

 private:
  RandomResizedCrop crop_;
};

}  // namespace

OpPointer parse_random_resized_crop(JsonReader& reader) {
  RandomResizedCrop crop;
  crop.size = read_size(reader);
  crop.interpolation = read_interpolation(reader);
  auto& [smallest, largest] = crop.scale;
  reader.required("scale", crop.scale);
  if (!(smallest > 0 && smallest <= largest && largest <= 1))
    reader.fail("scale", "must be two rising numbers above 0 and not above 1");
  const AspectRange aspect = read_aspect(reader);
  crop.ratio = aspect.ratio;
  crop.log_ratio = aspect.log_ratio;
  return std::make_unique<RandomResizedCropOp>(crop);
}

}  // namespace sluice::pipeline
