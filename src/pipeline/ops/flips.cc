// torchvision's RandomHorizontalFlip and RandomVerticalFlip, v1 and v2.
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class RandomFlip final : public Op {
 public:
  using Flip = Result<void> (PlannedImage::*)();
  RandomFlip(double probability, Flip flip) : probability_(probability), flip_(flip) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    return random.chance(probability_) ? (image.*flip_)() : Result<void>{};
  }

 private:
  double probability_;
  Flip flip_;
};

OpPointer parse(JsonReader& reader, RandomFlip::Flip flip) {
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  return std::make_unique<RandomFlip>(probability, flip);
}

}  // namespace

OpPointer parse_random_horizontal_flip(JsonReader& reader) { return parse(reader, &PlannedImage::flip_horizontally); }

OpPointer parse_random_vertical_flip(JsonReader& reader) { return parse(reader, &PlannedImage::flip_vertically); }

}  // namespace sluice::pipeline
