// The baseline: every trainer has the part of its hosts' CPU that goes with its GPUs, guaranteed and as a limit, and no
// data workers.
//
// Source: the default of GPU clusters, as described in Synergy (OSDI'22), section 2: "GPU-proportional allocation".
#pragma once

#include <memory>

#include "scheduler/model/policy.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_static_proportional_policy();

}  // namespace sluice::scheduler
