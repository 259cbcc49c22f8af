// A file's bytes become an image: Image.open(file).convert("RGB"). It is decoded when its pixels are needed.
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

class DecodeRgb final : public Op {
 public:
  bool draws() const override { return false; }
  ValueKind takes() const override { return ValueKind::kBytes; }
  ValueType result_of(const ValueType& /*input*/) const override { return {ValueKind::kImage, {}}; }
};

}  // namespace

OpPointer parse_decode_rgb(JsonReader& /*reader*/) { return std::make_unique<DecodeRgb>(); }

}  // namespace sluice::pipeline
