// torchvision's Normalize, v1 and v2: minus mean, divided by std, each rounded to float32.
#include <cmath>
#include <limits>

#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class Normalize final : public Op {
 public:
  Normalize(const std::array<double, 3>& mean, const std::array<double, 3>& deviation)
      : mean_(mean), deviation_(deviation) {}

  ValueKind takes() const override { return ValueKind::kTensor; }
  ValueType result_of(const ValueType& input) const override { return input; }
  bool is_pointwise() const override { return true; }

  using Op::change;
  void change(std::span<float> planes, ImageSize size, std::span<const std::uint8_t> /*drawn*/) const override {
    const std::size_t plane = bytes_of(size) / 3;
    for (std::size_t channel = 0; channel * plane < planes.size(); ++channel) {
      for (float& value : planes.subspan(channel * plane, plane)) {
        value -= static_cast<float>(mean_[channel]);
        value /= static_cast<float>(deviation_[channel]);
      }
    }
  }

 private:
  std::array<double, 3> mean_;
  std::array<double, 3> deviation_;
};

}  // namespace

OpPointer parse_normalize(JsonReader& reader) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  std::array<double, 3> mean{};
  std::array<double, 3> deviations{};
  reader.required("mean", mean);
  reader.required("std", deviations);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    if (std::abs(mean[channel]) > kLargest) reader.fail("mean", "must fit into float32");
    // torchvision refuses a deviation that is zero as float32, too.
    const double deviation = std::abs(deviations[channel]);
    if (static_cast<float>(deviation) == 0.0F || deviation > kLargest)
      reader.fail("std", "must fit into float32 and not be zero");
  }
  return std::make_unique<Normalize>(mean, deviations);
}

}  // namespace sluice::pipeline
