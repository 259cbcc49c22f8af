// A tensor of an image's bytes: torchvision's ToTensor divides by 255, v2.ToDtype(float32, scale=True) multiplies by
// its reciprocal. The last bit of every second byte differs. With scale=False, floats from 0 to 255 remain.
#include "src/base/json_reader.h"
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class Conversion : public Op {
 public:
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override {
    return {ValueKind::kTensor, input.size, input.channels};
  }
  bool is_pointwise() const override { return true; }
};

class ToTensor final : public Conversion {
 public:
  using Op::change;
  void change(std::span<float> planes, ImageSize /*size*/, std::span<const std::uint8_t> /*drawn*/) const override {
    for (float& value : planes) value /= 255.0F;
  }
};

class ToFloat final : public Conversion {
 public:
  explicit ToFloat(bool scale) : factor_(scale ? static_cast<float>(1.0 / 255.0) : 1.0F) {}

  using Op::change;
  void change(std::span<float> planes, ImageSize /*size*/, std::span<const std::uint8_t> /*drawn*/) const override {
    for (float& value : planes) value *= factor_;
  }

 private:
  float factor_;
};

}  // namespace

OpPointer parse_to_tensor(JsonReader& /*reader*/) { return std::make_unique<ToTensor>(); }

OpPointer parse_to_float(JsonReader& reader) {
  bool scale = true;
  reader.optional("scale", scale);
  return std::make_unique<ToFloat>(scale);
}

}  // namespace sluice::pipeline
