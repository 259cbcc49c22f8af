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

void to_proto(const OpCost& cost, v1::OpCost& out) {
  out.set_op(cost.op);
  out.set_seconds(cost.seconds);
  out.set_bytes(cost.bytes);
}

OpCost from_proto(const v1::OpCost& cost) { return {cost.op(), cost.seconds(), cost.bytes()}; }

void to_proto(const KeptCost& cost, v1::KeptCost& out) {
  out.set_function(cost.function);
  out.set_calls(cost.calls);
  out.set_hits(cost.hits);
  out.set_saved_seconds(cost.saved_seconds);
  out.set_bytes(cost.bytes);
}

KeptCost from_proto(const v1::KeptCost& cost) {
  return {cost.function(), cost.calls(), cost.hits(), cost.saved_seconds(), cost.bytes()};
}

void set_costs(v1::Chunk& last, double seconds, const std::vector<OpCost>& ops, std::optional<double> blocked_seconds) {
  last.set_seconds(seconds);
  for (const OpCost& cost : ops) to_proto(cost, *last.add_ops());
  if (blocked_seconds) last.set_blocked_seconds(*blocked_seconds);
}

}  // namespace sluice::transport
