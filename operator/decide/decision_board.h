// The last decision for every job, handed from the decision loop to the reconcile steps, the status and the metrics.
//
// Correctness does not depend on it. After a restart it is empty, and steps leave the figures of the status as they
// are. The next decision fills it again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/decide/utilisation.h"
#include "scheduler/model/plan.h"
#include "src/kube/resource.h"

namespace sluice::decide {

// Thread safety: a value.
struct JobDecision {
  std::string job_uid;  // of the TrainingJob; a namesake made later does not inherit the decision
  scheduler::JobPlan plan;
  std::optional<scheduler::Measurement> measurement;
  int allocated_workers = 0;  // in force when the decision was taken
  int ready_workers = 0;
  std::int64_t worker_millicores = 0;
  std::int64_t feeder_millicores = 0;  // requested by its feeders and in force when the decision was taken
  std::string feeder_problem;          // why they could not be resized, in a sentence; empty: they could
  std::string capped;                  // what the caps of its namespace take away, in sentences; empty: nothing
  std::string rare_scrapes;            // that its pods are scraped too rarely, with the way out; empty: they are not
  std::string left_free;               // the CPU that is left to other pods where that binds; empty: it does not
};

using DecisionPointer = std::shared_ptr<const JobDecision>;

struct Round {
  std::map<kube::ObjectKey, DecisionPointer> jobs;
  std::int64_t capacity_millicores = 0;
  std::int64_t granted_millicores = 0;
  scheduler::Utilisation utilisation;
  // The snapshot of the decision, for questions about another cluster. Null before the first decision.
  std::shared_ptr<const scheduler::ClusterSnapshot> snapshot;
};

// Thread safety: all methods may be called from any thread.
class DecisionBoard {
 public:
  // nullptr: none yet.
  DecisionPointer get(const kube::ObjectKey& job) const {
    const auto round = last_round();
    const auto found = round->jobs.find(job);
    return found == round->jobs.end() ? nullptr : found->second;
  }

  std::shared_ptr<const Round> last_round() const {
    std::lock_guard lock(mutex_);
    return round_;
  }

  void publish(Round round) {
    auto next = std::make_shared<const Round>(std::move(round));
    std::lock_guard lock(mutex_);
    round_ = std::move(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Round> round_ = std::make_shared<const Round>();
};

}  // namespace sluice::decide
