// The feeder's own series: sluice_trainer_* (the clients' reports) and sluice_feeder_*
// (docs/designs/protocols.md section 8).
//
// Counters of a rank continue over its streams, epochs and connections: clients report totals per stream, and only
// what a stream adds is counted.
// Thread safety: none; called under the feeder's lock. The registry itself may be scraped at any time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "src/executor/executor_metrics.h"
#include "src/transport/local_message.h"

namespace prometheus {
class Counter;
class Gauge;
class Registry;
}  // namespace prometheus

namespace sluice::feeder {

class FeederMetrics {
 public:
  FeederMetrics(prometheus::Registry& registry, const executor::JobLabels& labels);
  ~FeederMetrics();

  // `before`: what this stream had reported last (all zero at first). A total that went backwards counts as nothing.
  // What remains of the training is what the rank's last report says: where it says nothing, there is no series.
  void count_progress(std::int64_t rank, const transport::ProgressMessage& before,
                      const transport::ProgressMessage& now);

  void count_batch(std::string_view placement, double unix_seconds);
  void count_reissued(std::size_t batches);
  void count_duplicate();
  void count_hedged();
  void count_refused_worker();
  void set_remote_workers(std::size_t workers);
  void set_outstanding(std::size_t batches);
  void set_arena_free(std::size_t bytes);
  // The process's total so far; a value below the last one counts as nothing.
  void set_cpu_seconds(double total);

 private:
  struct Families;
  struct Rank {
    prometheus::Counter* samples = nullptr;
    prometheus::Counter* skipped_samples = nullptr;
    prometheus::Counter* batches = nullptr;
    prometheus::Counter* compute_seconds = nullptr;
    prometheus::Counter* wait_seconds = nullptr;
    prometheus::Gauge* queue_depth = nullptr;
    prometheus::Gauge* queue_capacity = nullptr;
    prometheus::Gauge* epoch = nullptr;
    prometheus::Gauge* remaining_samples = nullptr;  // null: the rank does not say
  };
  void set_remaining(std::int64_t number, std::optional<std::uint64_t> samples, Rank& series);
  Rank& rank(std::int64_t number);

  std::unique_ptr<Families> families_;
  std::map<std::int64_t, Rank> ranks_;
  bool had_remote_batch_ = false;
  double cpu_seconds_ = 0;  // as told last
};

}  // namespace sluice::feeder
