// A TrainingJob's status: conditions, workers, the figures behind the last decision, and why. Plus the events that its
// changes are worth.
//
// Pure. Written only when something changed; figures that merely tremble (5 %) are kept, so that an idle cluster is
// silent.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "operator/act/training_job.h"
#include "operator/decide/decision_board.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"

namespace sluice::act {

struct StatusStep {
  std::optional<kube::Action> action;
  std::vector<kube::Event> events;  // for after the action has succeeded
  bool urgent = false;              // it is the first status, or a condition turns
};

// `decision`: the last one for this job; null: none. `child_error`: the error in bringing the children to the state of
// the spec; null: none. `now`: RFC 3339, seconds, UTC.
StatusStep reconcile_status(const TrainingJobWorld& world, const decide::JobDecision* decision,
                            const Error* child_error, std::string_view now);

}  // namespace sluice::act
