// The containers that Sluice adds to pods, as the LimitRanges of a namespace allow them. What a user has written stays
// as it is: where it is not allowed, the objection says so.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/act/training_job.h"
#include "operator/api/container_bounds.h"
#include "operator/api/training_job.h"
#include "operator/config.h"

namespace sluice::act {

// The same where it is allowed. Else requests are raised rather than limits lowered: the copy shall not take long.
control::BundleResources fitted_bundle(const control::BundleResources& bundle, const api::ContainerBounds& bounds);

// The resources of the job's feeder. Another value than the schema's default is the user's; instead of that the feeder
// gets memory for its arena, too.
nlohmann::json fitted_feeder(const api::TrainingJob& training_job, const api::ContainerBounds& bounds);

// Which value of the job the LimitRanges of its namespace refuse in its workers, and in its trainers; empty: none.
std::string objection_to_workers(const TrainingJobWorld& world);
std::string objection_to_trainers(const TrainingJobWorld& world);

}  // namespace sluice::act
