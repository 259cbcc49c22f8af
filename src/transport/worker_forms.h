// Batches and tensors in the form of worker.proto. Included only by the .cc files that speak gRPC.
//
// Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "src/transport/batch.h"
#include "src/transport/function_call.h"
#include "src/transport/worker.pb.h"

namespace sluice::transport {

// Feeder and worker work together only where both speak the same version.
inline constexpr std::uint32_t kProtocolVersion = 3;
inline std::uint32_t protocol_of(const v1::Hello& hello) { return std::max(1u, hello.protocol()); }
inline std::uint32_t protocol_of(const v1::Pipeline& pipeline) { return std::max(1u, pipeline.protocol()); }

void to_proto(const BatchSpec& batch, v1::BatchSpec& out);
BatchSpec from_proto(const v1::BatchSpec& batch);

void to_proto(const TensorDescription& tensor, v1::Tensor& out);
TensorDescription from_proto(const v1::Tensor& tensor);

void to_proto(const OpCost& cost, v1::OpCost& out);
OpCost from_proto(const v1::OpCost& cost);

void to_proto(const KeptCost& cost, v1::KeptCost& out);
KeptCost from_proto(const v1::KeptCost& cost);

// What the last chunk says of its whole batch, with the fields' meaning.
void set_costs(v1::Chunk& last, double seconds, const std::vector<OpCost>& ops, std::optional<double> blocked_seconds);

}  // namespace sluice::transport
