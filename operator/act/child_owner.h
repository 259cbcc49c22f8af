// Whose an object is that bears the name of a child of a TrainingJob.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "src/base/result.h"

namespace sluice::act {

// A child must be this TrainingJob's own. A namesake's (deleted a moment ago, not collected yet), one that was left
// without an owner, or a stranger's is waited for, not taken over. Errors: AlreadyExists, with whose it is and the way
// out; such children bear Sluice's labels unless a stranger made them.
Result<void> check_owner(const nlohmann::json& training_job, const nlohmann::json& child, std::string_view kind);

}  // namespace sluice::act
