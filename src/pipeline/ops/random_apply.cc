// torchvision's RandomApply, v1 and v2: all of its operations on images, or none.
//
// The client says by `p` which of torch's 2^24 random numbers apply them: those below it. So it expresses the "less"
// and "not more" of torchvision's transforms.
#include <utility>
#include <vector>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"
#include "src/pipeline/ops/registry.h"

namespace sluice::pipeline {
namespace {

class RandomApply final : public Op {
 public:
  RandomApply(double probability, std::vector<OpPointer> ops) : probability_(probability), ops_(std::move(ops)) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    if (!random.chance(probability_)) return {};
    for (const OpPointer& op : ops_) SLUICE_TRY_VOID(op->change(image, random));
    return {};
  }

 private:
  double probability_;
  std::vector<OpPointer> ops_;
};

// With and without them, the image must have the same size and channels. The reader does not know which, so it tries
// two.
bool keep_the_size(const std::vector<OpPointer>& ops) {
  for (const ImageSize size : {ImageSize{97, 131}, ImageSize{101, 89}}) {
    ValueType value{ValueKind::kImage, size};
    for (const OpPointer& op : ops) value = op->result_of(value);
    if (value.size != size || value.channels != 3) return false;
  }
  return true;
}

void read_ops(JsonReader& reader, std::vector<OpPointer>& ops) {
  const nlohmann::json* list = reader.find("ops");
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > kMaxOps)
    return reader.fail("ops", list == nullptr ? "is missing" : "must be a list of 1 to " + std::to_string(kMaxOps));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = "ops[" + std::to_string(i) + "]";
    const nlohmann::json& fields = (*list)[i];
    if (fields.is_object() && fields.contains("ops")) return reader.fail(path, "must not have operations of its own");
    ValueType value{ValueKind::kImage, {}};
    auto op = read_op(fields, "", value);
    if (!op.ok()) return reader.fail(path, op.error().message());
    if (value.kind != ValueKind::kImage) return reader.fail(path, "must make an image");
    if (op->keeps_position) return reader.fail(path, "must not keep its position by itself");
    ops.push_back(std::move(op->op));
  }
  if (!keep_the_size(ops)) reader.fail("ops", "must keep the size of the image");
}

}  // namespace

OpPointer parse_random_apply(JsonReader& reader) {
  double probability = 0;
  reader.required("p", probability, 0.0, 1.0);
  std::vector<OpPointer> ops;
  read_ops(reader, ops);
  return std::make_unique<RandomApply>(probability, std::move(ops));
}

}  // namespace sluice::pipeline
