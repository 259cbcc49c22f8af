// A file's bytes become an image: Image.open(file).convert("RGB"). It is decoded when its pixels are needed.
//
// `only_rgb`: what Image.open(file) alone gives. An image that Pillow does not open as RGB is refused then.
// `only_8_bits`: a file of 16 bits is refused, of which torchvision's decoders keep all.
#include "src/base/json_reader.h"
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class DecodeRgb final : public Op {
 public:
  DecodeRgb(bool only_rgb, bool only_8_bits) : only_rgb_(only_rgb), only_8_bits_(only_8_bits) {}

  bool draws() const override { return false; }
  ValueKind takes() const override { return ValueKind::kBytes; }
  ValueType result_of(const ValueType& /*input*/) const override { return {ValueKind::kImage, {}}; }

  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override {
    if (only_rgb_ && !image.is_of_rgb_file())
      return invalid_argument("is not RGB, and nothing converts it; its batch needs the Python pipeline");
    if (only_8_bits_ && image.is_of_16_bits())
      return invalid_argument("has 16 bits, which torchvision keeps; its batch needs the Python pipeline");
    return {};
  }

 private:
  bool only_rgb_;
  bool only_8_bits_;
};

}  // namespace

OpPointer parse_decode_rgb(JsonReader& reader) {
  bool only_rgb = false;
  bool only_8_bits = false;
  reader.optional("only_rgb", only_rgb);
  reader.optional("only_8_bits", only_8_bits);
  return std::make_unique<DecodeRgb>(only_rgb, only_8_bits);
}

}  // namespace sluice::pipeline
