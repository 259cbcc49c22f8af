// FastFlow: each job is profiled at its start, first without and then with a remote worker. It gets the number of
// workers that closes the gap between its accelerator and its own CPU, and keeps them to its end (fastflow_profile.h).
//
// Local CPU: the GPU-proportional share. The release's autoscaler only records its advice, so nothing follows the
// profile.
//
// Source: FastFlow (VLDB'23), section 4.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/fastflow_profile.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_fastflow_policy(const FastFlowConstants& constants = {});

}  // namespace sluice::scheduler
