// Knowledge of jobs that ran before, by their likeness (api::TrainingJob::likeness). A job like one of them begins with
// its knee, its rates and its number of workers. The first measurement weighs as much as all of that.
//
// Kept in a ConfigMap of the operator's namespace: one key per likeness, the newest 500, none older than 30 days. It is
// worth having, not worth guarding: an unreadable entry is forgotten, and of two leaders the last one's write stays.
//
// Thread safety: none; one owner.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operator/api/worker_size.h"
#include "scheduler/model/snapshot.h"

namespace sluice::decide {

struct LearntJob {
  scheduler::EstimatorMemory memory;  // knee, rates and their correction
  int workers = 0;
  std::optional<api::WorkerSize> size;  // of a worker, where Sluice had chosen it
  double learnt_at_seconds = 0;         // unix time
};

class LearntJobs {
 public:
  // `data`: of the ConfigMap. Entries that cannot be read are left out.
  void load(const nlohmann::json& data, double now_seconds);
  // The data to be written.
  nlohmann::json data() const;

  // Of the job with that likeness, else of the newest one that shares the part before its dot: it made its batches in
  // another way, but is the better guess than none. nullopt: nothing is known of a job like it.
  std::optional<LearntJob> find(const std::string& likeness, double now_seconds) const;

  // Replaces the earlier entry. Nothing is learnt from a job without a knee.
  void learn(const std::string& likeness, const scheduler::EstimatorMemory& memory, int workers,
             std::optional<api::WorkerSize> size, double now_seconds);

  // Whether the knowledge has changed by more than a little since the last written().
  bool has_news() const { return has_news_; }
  void written() { has_news_ = false; }

 private:
  using Entry = std::map<std::string, LearntJob>::const_iterator;

  Entry most_like(const std::string& likeness) const;

  std::map<std::string, LearntJob> jobs_;
  bool has_news_ = false;
};

}  // namespace sluice::decide
