// The measured part of a TrainingJob's status: figures, bottleneck, explanation.
//
// Pure functions; thread-safe.
#pragma once

#include "operator/api/status_draft.h"
#include "operator/decide/decision_board.h"

namespace sluice::act {

// Adds figures, bottleneck and explanation to `status`. Those of the status before stay
//   - without a decision (the operator has just started, or the job is over),
//   - without usable metrics (the explanation says that they are missing), and before and after the trainer runs,
//   - when the new ones differ by less than 5 % and the explanation only in its numbers.
// A figure that is not known is absent, never zero.
void render_observed(api::TrainingJobStatusDraft& status, const decide::JobDecision* decision);

}  // namespace sluice::act
