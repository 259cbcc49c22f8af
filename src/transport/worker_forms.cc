#include "src/transport/worker_forms.h"

namespace sluice::transport {

void to_proto(const BatchSpec& batch, v1::BatchSpec& out) {
  out.set_seq(batch.seq);
  out.set_base_seed(batch.base_seed);
  out.set_epoch(batch.epoch);
  out.set_position(batch.position);
  out.mutable_indices()->Assign(batch.indices.begin(), batch.indices.end());
}

BatchSpec from_proto(const v1::BatchSpec& batch) {
  return {batch.seq(),
          batch.base_seed(),
          batch.epoch(),
          batch.position(),
          {batch.indices().begin(), batch.indices().end()}};
}

void to_proto(const TensorDescription& tensor, v1::Tensor& out) {
  out.set_dtype(tensor.dtype);
  out.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
  out.set_offset(tensor.offset);
  out.set_nbytes(tensor.nbytes);
}

TensorDescription from_proto(const v1::Tensor& tensor) {
  return {tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, tensor.offset(), tensor.nbytes()};
}

}  // namespace sluice::transport
