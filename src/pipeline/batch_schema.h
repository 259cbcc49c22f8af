// The tensors of a batch: their names, types, shapes, and where each sample of them lies in the batch's slot.
//
// This is the one place that lays a batch out. The feeder announces it with each batch, and the client maps it.
//
// Thread safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::pipeline {

struct Field {
  std::string_view name;
  std::string_view dtype;                  // torch's name ("float32"); static storage
  std::vector<std::int64_t> sample_shape;  // empty: a scalar
  std::size_t sample_bytes = 0;
};

// Where one tensor of a batch lies, relative to the start of the batch's slot.
struct TensorLayout {
  std::string_view dtype;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;  // bytes, a multiple of 64
  std::size_t nbytes = 0;
};

class BatchSchema {
 public:
  // REQUIRES: there are some
  explicit BatchSchema(std::vector<Field> fields) : fields_(std::move(fields)) {}

  const std::vector<Field>& fields() const { return fields_; }

  // The tensors of a batch of `samples`, in the fields' order: no overlap, no gap larger than the alignment.
  std::vector<TensorLayout> layout(std::size_t samples) const;
  // What a slot for them needs.
  std::size_t batch_bytes(std::size_t samples) const;
  // Where a field's tensor begins in the slot of a batch of `samples`.
  std::size_t offset_of(std::size_t field, std::size_t samples) const;

 private:
  std::vector<Field> fields_;
};

}  // namespace sluice::pipeline
