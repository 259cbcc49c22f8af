// The status of an object as the operator writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/training_job.h"

namespace sluice::api {

// A new status beside the one that `object` has.
//
// Thread safety: none; one owner. REQUIRES: the object's JSON outlives the draft.
class StatusDraft {
 public:
  explicit StatusDraft(const Object& object);

  // With the time of their last change, which is `now` where one changes.
  void set_conditions(const std::vector<Condition>& conditions, std::string_view now);
  void keep_all();  // of the status before; REQUIRES: nothing is set yet
  bool is_news() const { return status_ != object_.status(); }
  // As the body of a server-side apply.
  nlohmann::json body() const { return {{"status", status_}}; }

 protected:
  nlohmann::json& part(const char* name) { return status_[name]; }
  const nlohmann::json& part(const char* name) const { return member(status_, name); }
  const nlohmann::json& part_before(const char* name) const { return member(object_.status(), name); }
  void keep(const char* name);  // as it was before, or absent

 private:
  Object object_;
  nlohmann::json status_;
};

class PoolStatusDraft : public StatusDraft {
 public:
  explicit PoolStatusDraft(const DataWorkerPool& pool) : StatusDraft(pool), job_(pool.job()) {}

  // And by which labels autoscalers find them.
  void set_workers(std::int64_t live, std::int64_t ready);

 private:
  std::string job_;
};

// What was measured of a job. A figure that is not known is absent, never zero.
struct ObservedFigures {
  std::optional<double> samples_per_second;
  std::optional<double> accelerator_utilisation_percent;
  std::optional<double> data_wait_percent;
  std::optional<double> demand_samples_per_second;
  std::optional<double> local_rate_per_core;
  std::optional<double> remote_rate_per_core;
  std::optional<double> knee_millicores;
  std::optional<double> supply_percent;
};

class TrainingJobStatusDraft : public StatusDraft {
 public:
  explicit TrainingJobStatusDraft(const TrainingJob& training_job) : StatusDraft(training_job) {}

  void set_workers(std::int64_t desired, std::int64_t ready, std::optional<std::int64_t> recommended);
  bool has_workers_as_before() const { return part("workers") == part_before("workers"); }
  void set_restarts(std::int64_t restarts) { part("restarts") = restarts; }
  void set_claimed_accelerators(std::int64_t count) { part("claimedAccelerators") = count; }
  void keep_claimed_accelerators() { keep("claimedAccelerators"); }

  void set_bottleneck(std::string_view bottleneck) { part("bottleneck") = bottleneck; }
  void keep_bottleneck() { keep("bottleneck"); }
  std::string bottleneck() const;

  void set_explanation(std::string_view explanation) { part("explanation") = explanation; }
  void keep_explanation() { keep("explanation"); }
  std::string explanation_before() const;

  // Whole numbers by name.
  void set_figures(const ObservedFigures& figures);
  void keep_figures() { keep("observed"); }
  const nlohmann::json& figures() const { return part("observed"); }
  const nlohmann::json& figures_before() const { return part_before("observed"); }
};

}  // namespace sluice::api
