// The sluice_worker_* series of one process (docs/designs/first-slice.md section 8).
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
  // `total`: CPU seconds that the process has spent on everything else than executing: receiving requests, sending
  // results. A core's worth of such a worker is less than its executors see. Never falls.
  void set_transport_seconds(double total);
  // Adds `seconds` to the per-op counters and resets it.
  void count_ops(OpSeconds& seconds);
  void set_threads(std::size_t threads);
  void set_queue_depth(std::size_t batches);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace sluice::executor
