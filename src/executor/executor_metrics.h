// The sluice_worker_* series of one process (docs/designs/protocols.md section 8).
//
// References to the counters are looked up once; counting is an atomic addition.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include "src/executor/batch.h"
#include "src/executor/native_batch.h"

namespace prometheus {
class Registry;
}

namespace sluice::executor {

// Constant labels of every series that a feeder or worker exports.
struct JobLabels {
  std::string job;
  std::string job_namespace;
};

class ExecutorMetrics {
 public:
  // `placement`: "local" in a feeder, "remote" in a worker.
  ExecutorMetrics(prometheus::Registry& registry, const JobLabels& labels, const std::string& placement);
  ~ExecutorMetrics();

  void count_batch(ExecutorKind kind, std::size_t samples, double busy_seconds, std::size_t bytes);
  // CPU seconds that were spent without a finished batch to show for it.
  void count_error(ExecutorKind kind, double busy_seconds);
  // The same for a batch that was cancelled: no sample and no error, whether it was finished or not.
  void count_unwanted(ExecutorKind kind, double busy_seconds);
  // Seconds for which an executor had a batch in hand and neither ran nor waited for a CPU. An executor has no such
  // series before the first report.
  void count_blocked(ExecutorKind kind, double seconds);
  // `total`: CPU seconds that the process has spent on everything else than executing: receiving requests, sending
  // results. A core's worth of such a worker is less than its executors see. Never falls.
  void set_transport_seconds(double total);
  // Adds `costs` to the per-op counters, and to what the native executor was blocked, and resets it. An operation that
  // not every pipeline has gets its series with its first cost.
  void count_ops(pipeline::OpCosts& costs);
  void set_threads(std::size_t threads);
  void set_queue_depth(std::size_t batches);
  // The working set now; the series keeps the largest. There is no such series before the first report.
  void saw_memory(std::size_t bytes);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace sluice::executor
