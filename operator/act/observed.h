// The measured part of a TrainingJob's status: figures, bottleneck, explanation.
//
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/decide/decision_board.h"

namespace sluice::act {

// Adds observed, bottleneck and explanation to `status`. `before` is the status as it is; its figures stay
//   - without a decision (the operator has just started, or the job is over),
//   - without usable metrics (the explanation says that they are missing), and before and after the trainer runs,
//   - when the new ones differ by less than 5 % and the explanation only in its numbers.
// A figure that is not known is absent, never zero.
void render_observed(nlohmann::json& status, const nlohmann::json& before, const decide::JobDecision* decision);

}  // namespace sluice::act
