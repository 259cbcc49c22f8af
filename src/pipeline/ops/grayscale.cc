// torchvision's Grayscale and RandomGrayscale, v1 and v2 on PIL images and v2 on tensors: the luminance in all three
// channels, or in one.
#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/blend.h"
#include "src/pipeline/ops/fields.h"
#include "src/pipeline/ops/tensor_color.h"

namespace sluice::pipeline {
namespace {

class Grayscale final : public Op {
 public:
  Grayscale(std::optional<double> probability, std::optional<int> channels, bool is_tensor)
      : probability_(probability), channels_(channels), is_tensor_(is_tensor) {}

  bool draws() const override { return probability_.has_value(); }
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override {
    return {input.kind, input.size, channels_.value_or(input.channels)};
  }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    if (probability_ && !random.chance(*probability_)) return {};
    if (is_tensor_)
      image.change_each([](Pixels pixels) { make_tensor_grey(pixels); });
    else
      image.change_each([](Pixels pixels) { make_grey(pixels); });
    return {};
  }

 private:
  std::optional<double> probability_;  // none: always, without a draw
  std::optional<int> channels_;        // that it makes; none: as many as there are
  bool is_tensor_;
};

}  // namespace

OpPointer parse_grayscale(JsonReader& reader) {
  int channels = 3;
  if (reader.find("channels") != nullptr) reader.required("channels", channels, 1, 3);
  if (channels == 2) reader.fail("channels", "must be 1 or 3");
  return std::make_unique<Grayscale>(std::nullopt, channels, read_is_tensor(reader));
}

OpPointer parse_random_grayscale(JsonReader& reader) {
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  return std::make_unique<Grayscale>(probability, std::nullopt, read_is_tensor(reader));
}

}  // namespace sluice::pipeline
