// tf.data service with an autoscaler that follows its formula at every decision (tfdata_formula.h), each job alone.
//
// The original prepares everything on its workers. Here a trainer keeps its GPU-proportional share, and only what that
// leaves of the demand counts as consumed from the service.
//
// Source: tf.data service (SoCC'23), section 3.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_tfdata_policy();

}  // namespace sluice::scheduler
