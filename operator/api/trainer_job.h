// The trainer's batch/v1 Job.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "operator/api/object.h"

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

}  // namespace sluice::api
