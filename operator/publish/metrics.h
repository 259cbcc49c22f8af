// The operator's own metrics; docs/metrics.md.
//
// Counters live in a registry. The per-job gauges are rendered from the decision board at scrape time: they appear and
// vanish with the jobs, and nothing has to be removed.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "operator/decide/decision_board.h"
#include "scheduler/model/config.h"

namespace prometheus {
class Collectable;
}

namespace sluice::control {

// Thread safety: all methods may be called from any thread.
class Metrics {
 public:
  // REQUIRES: board and config outlive the metrics. `config`: that the decisions are taken with.
  Metrics(const decide::DecisionBoard& board, const scheduler::Config& config);
  ~Metrics();

  void decided(std::chrono::duration<double> took);
  void queried(bool answered);
  // `controller`: "training_job" or "data_worker_pool".
  void reconcile_failed(const std::string& controller);

  // For http::metrics_page.
  std::vector<std::weak_ptr<prometheus::Collectable>> collectables() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice::control
