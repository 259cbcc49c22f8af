// Own share plus all CPU that is idle on the same host: a CPU request without a limit.
//
// Source: Kubernetes documentation, "Resource Management for Pods and Containers": the request is guaranteed, and idle
// CPU is shared in proportion to requests. Without a limit a container may use all of it.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_burst_policy();

}  // namespace sluice::scheduler
