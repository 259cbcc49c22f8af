// The trainer's batch/v1 Job.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "operator/api/object_draft.h"
#include "operator/api/training_job.h"

namespace sluice::api {

// Thread safety, missing fields: as Object.
class TrainerJob : public Object {
 public:
  using Object::Object;

  bool suspended() const;
  // The operator's last request; unset where the Job does not say.
  std::optional<bool> asked_to_suspend() const;
  std::int64_t completions() const;
  const nlohmann::json& pod_template() const;
  const nlohmann::json& pod() const;  // the pod spec of that template
  // Ports that its pods take on the network of their nodes.
  std::set<std::int64_t> host_ports() const;

  std::int64_t active() const;     // pods that are neither over nor leaving
  std::int64_t ready() const;      // of these
  std::int64_t succeeded() const;  // pods
  bool complete() const { return condition_is_true("Complete"); }
  bool failed() const { return condition_is_true("Failed"); }
  bool over() const { return complete() || failed(); }
  // It failed because pods of it did, and not by a rule of its policy or its deadline.
  bool failed_by_pods() const;
  // Unix time; 0 where it does not say.
  double started_at_seconds() const;
  double failed_at_seconds() const;
  // How often all trainer pods had been started again when it was made.
  std::int64_t restarts() const;
  bool removed_when_over() const;  // by its own ttlSecondsAfterFinished

  // Whether its pods were made with a feeder; unset where the Job does not say.
  std::optional<bool> has_feeder() const;
};

// The Job of a trainer that has none yet.
//
// Thread safety: none; one owner.
class TrainerJobDraft : public ObjectDraft {
 public:
  TrainerJobDraft(std::string_view name_space, std::string_view name);

  void set_pods(std::int64_t count, nlohmann::json pod_template);
  void set_feeder(bool with_feeder);  // whether the template has one
  void set_suspended(bool suspended);
  void set_restarts(std::int64_t restarts);
  // The queue that Kueue admits it by, and what the TrainingJob says of failed pods and of time.
  void take_over(const TrainingJob& training_job);
  void never_retry() { spec()["backoffLimit"] = 0; }
};

// Merge patches of a Job.
nlohmann::json suspension_patch(bool suspended);
nlohmann::json removal_patch(const nlohmann::json& seconds_after_end);

}  // namespace sluice::api
