// torchvision's Grayscale(3) and RandomGrayscale, v1 and v2: the luminance in all three channels.
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/blend.h"

namespace sluice::pipeline {
namespace {

class Grayscale final : public Op {
 public:
  explicit Grayscale(std::optional<double> probability) : probability_(probability) {}

  bool draws() const override { return probability_.has_value(); }
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    if (probability_ && !random.chance(*probability_)) return {};
    image.change_each([](Pixels pixels) { make_grey(pixels); });
    return {};
  }

 private:
  std::optional<double> probability_;  // none: always, without a draw
};

}  // namespace

OpPointer parse_grayscale(JsonReader& /*reader*/) { return std::make_unique<Grayscale>(std::nullopt); }

OpPointer parse_random_grayscale(JsonReader& reader) {
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  return std::make_unique<Grayscale>(probability);
}

}  // namespace sluice::pipeline
