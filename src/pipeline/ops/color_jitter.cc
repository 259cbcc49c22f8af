// torchvision's ColorJitter, v1 and v2 on PIL images and v2 on tensors: brightness, contrast and saturation are blends,
// hue turns the H of HSV (image_changes.h). The order of the four is drawn first, then their factors.
#include <array>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"
#include "src/pipeline/ops/image_changes.h"

namespace sluice::pipeline {
namespace {

using Jitters = std::array<Result<void> (*)(float factor, PlannedImage& image), 4>;
constexpr Jitters kJitters{change_brightness, change_contrast, change_saturation, change_hue};
constexpr Jitters kTensorJitters{change_tensor_brightness, change_tensor_contrast, change_tensor_saturation,
                                 change_tensor_hue};
using Ranges = std::array<std::optional<std::array<double, 2>>, kJitters.size()>;

class ColorJitter final : public Op {
 public:
  ColorJitter(const Ranges& ranges, const Jitters& jitters) : ranges_(ranges), jitters_(jitters) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const std::array<int, 4> order = random.permutation_of_four();
    std::array<float, kJitters.size()> factors{};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!ranges_[i]) continue;
      factors[i] = random.uniform(static_cast<float>((*ranges_[i])[0]), static_cast<float>((*ranges_[i])[1]));
    }
    for (const int number : order) {
      const auto i = static_cast<std::size_t>(number);
      if (ranges_[i]) SLUICE_TRY_VOID(jitters_[i](factors[i], image));
    }
    return {};
  }

 private:
  Ranges ranges_;
  Jitters jitters_;
};

}  // namespace

OpPointer parse_color_jitter(JsonReader& reader) {
  constexpr std::array kNames{"brightness", "contrast", "saturation", "hue"};
  constexpr double kLargestFactor = 1e6;
  Ranges ranges;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (reader.find(kNames[i]) == nullptr) continue;
    auto& range = ranges[i].emplace();
    reader.required(kNames[i], range);
    const bool is_hue = i == 3;
    const double smallest = is_hue ? -0.5 : 0;
    const double largest = is_hue ? 0.5 : kLargestFactor;
    if (!(range[0] >= smallest && range[0] <= range[1] && range[1] <= largest))
      reader.fail(kNames[i],
                  is_hue ? "must be two rising numbers from -0.5 to 0.5" : "must be two rising numbers from 0");
  }
  return std::make_unique<ColorJitter>(ranges, read_is_tensor(reader) ? kTensorJitters : kJitters);
}

}  // namespace sluice::pipeline
