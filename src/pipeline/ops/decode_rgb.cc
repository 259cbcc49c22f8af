// A file's bytes become an image: Image.open(file).convert("RGB"). It is decoded when its pixels are needed.
//
// `only_rgb`: what Image.open(file) alone gives. An image that Pillow does not open as RGB is refused then.
#include "src/base/json_reader.h"
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class DecodeRgb final : public Op {
 public:
  explicit DecodeRgb(bool only_rgb) : only_rgb_(only_rgb) {}

  bool draws() const override { return false; }
  ValueKind takes() const override { return ValueKind::kBytes; }
  ValueType result_of(const ValueType& /*input*/) const override { return {ValueKind::kImage, {}}; }

  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override {
    if (!only_rgb_ || image.is_of_rgb_file()) return {};
    return invalid_argument("is not RGB, and nothing converts it; its batch needs the Python pipeline");
  }

 private:
  bool only_rgb_;
};

}  // namespace

OpPointer parse_decode_rgb(JsonReader& reader) {
  bool only_rgb = false;
  reader.optional("only_rgb", only_rgb);
  return std::make_unique<DecodeRgb>(only_rgb);
}

}  // namespace sluice::pipeline
