// torchvision's RandomRotation about the middle, keeping the size, v1 and v2.
#include "src/pipeline/ops/affine.h"
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/augmentation.h"

namespace sluice::pipeline {
namespace {

class RandomRotation final : public Op {
 public:
  RandomRotation(std::array<double, 2> degrees, const AffineStyle& style) : degrees_(degrees), style_(style) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const float angle = random.uniform(static_cast<float>(degrees_[0]), static_cast<float>(degrees_[1]));
    return rotate(static_cast<double>(angle), style_, image);
  }

 private:
  std::array<double, 2> degrees_;
  AffineStyle style_;
};

}  // namespace

OpPointer parse_random_rotation(JsonReader& reader) {
  constexpr double kMostDegrees = 1e6;
  std::array<double, 2> degrees{};
  reader.required("degrees", degrees);
  if (!(degrees[0] >= -kMostDegrees && degrees[0] <= degrees[1] && degrees[1] <= kMostDegrees))
    reader.fail("degrees", "must be two rising numbers");
  return std::make_unique<RandomRotation>(degrees, read_affine_style(reader));
}

}  // namespace sluice::pipeline
