// The seam between the feeder and its remote workers: two small interfaces, one for each direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/transport/arena.h"
#include "worker-image/feeder/dispatch.h"
#include "worker-image/feeder/local_executor.h"

namespace sluice::feeder {

// What executors tell the feeder. Thread safety: may be called from any thread, but not from within a call of
// RemoteExecutors (the feeder makes those under its lock).
class ExecutorEvents {
 public:
  virtual ~ExecutorEvents() = default;

  // REQUIRES: `executor` is new and not kLocalExecutor; RemoteExecutors knows it: work may come before this returns.
  virtual void executor_joined(ExecutorId executor, const std::string& address, std::size_t threads,
                               std::size_t credits, std::size_t waiting_max) = 0;
  // It speaks another version of the protocol: it will not join, and its connection is given up.
  virtual void executor_refused(const std::string& address, std::uint32_t protocol) = 0;
  virtual void executor_draining(ExecutorId executor) = 0;
  // Nothing of this executor counts any more, except answers that are already on their way.
  virtual void executor_lost(ExecutorId executor, const std::string& reason) = 0;
  virtual void pipeline_ready(ExecutorId executor, PipelineNumber pipeline) = 0;
  virtual void pipeline_refused(ExecutorId executor, PipelineNumber pipeline, const std::string& reason) = 0;
  virtual void finished(ExecutorId executor, RequestId request, BatchOutcome outcome) = 0;
};

// The feeder's view of remote executors. Unknown executors are ignored: they have just been lost.
class RemoteExecutors {
 public:
  virtual ~RemoteExecutors() = default;

  // Answered by pipeline_ready or pipeline_refused, once per executor and pipeline however often it is called.
  virtual void load(ExecutorId executor, executor::PipelineHandle pipeline) = 0;
  // REQUIRES: the pipeline is ready there.
  virtual void execute(ExecutorId executor, RequestId id, executor::RequestHandle request) = 0;
  // Returns what the batch occupied. Freeing it may run a waiter for memory, which calls ExecutorEvents: not under the
  // feeder's lock.
  [[nodiscard]] virtual transport::ArenaSlot cancel(ExecutorId executor, RequestId id) = 0;
};

}  // namespace sluice::feeder
