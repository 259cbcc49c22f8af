// The status of a DataWorkerPool: what it says, and when it is written.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/act/data_worker_pool.h"
#include "operator/act/pool_workers.h"

namespace sluice::act {

// The write of the status; none where it is so already. `blocked`: what keeps the pool from its number of workers.
std::optional<kube::Action> pool_status(const PoolWorld& world, const Workers& workers, std::int64_t desired,
                                        const std::optional<Refusal>& blocked);

// A worker that waits at a scheduling gate is left alone: it holds no CPU, and would lose its place in the queue.
std::optional<Refusal> wait_at_gate(const Workers& workers);

// A worker that its scheduler has not looked at for a minute. It stays, as a scheduler may be far behind. Looks again
// where a worker's minute is not over.
std::optional<Refusal> wait_for_scheduler(PoolStep& step, const PoolWorld& world, const Workers& workers);

// Puts the status into the step, or lets it wait. Every pod that starts changes the counts, and a status costs the API
// server as much as a pod (bench/scale). So the status reports the way to the wanted number now and then, and the
// arrival at once. Both come after the pods of all pools. A report does not wait while pods are asked for: the server
// may refuse them again and again.
void report(PoolStep& step, const PoolWorld& world, std::optional<kube::Action> status, bool arrived);

}  // namespace sluice::act
