// The NetworkPolicy of a job's data workers.
//
// Thread safety: a constant and a pure function.
#pragma once

#include <string>
#include <string_view>

#include "src/kube/resource.h"

namespace sluice::api {

inline constexpr kube::Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};

inline std::string network_policy_name(std::string_view job) { return std::string(job) + "-workers"; }

}  // namespace sluice::api
