// Claims of dynamic resource allocation, as far as they say how many accelerators a trainer's pod gets.
//
// Thread safety: pure functions. Missing or wrongly typed fields count as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/kube/resource.h"

namespace sluice::api {

// In this version since Kubernetes 1.34. A server without it answers that there is no such claim.
inline constexpr kube::Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim"};
inline constexpr kube::Resource kResourceClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                                        "ResourceClaimTemplate"};

// The object that tells what a claim of a pod asks for.
struct DeviceClaim {
  std::string name;
  bool is_template = false;

  const kube::Resource& resource() const { return is_template ? kResourceClaimTemplates : kResourceClaims; }
  bool operator==(const DeviceClaim&) const = default;
};

// Those that containers of the pod use, each once. Empty where the containers' limits name accelerators: these count.
std::vector<DeviceClaim> device_claims_of_pod(const nlohmann::json& pod_spec);

// What one claim asks for.
struct ClaimedDevices {
  std::int64_t all = 0;
  std::int64_t accelerators = 0;  // of those, the ones whose class tells of accelerators, such as gpu.nvidia.com
};

// Of a ResourceClaim or a ResourceClaimTemplate. A request for all devices of a node counts as one, and of alternatives
// the first one counts.
ClaimedDevices claimed_devices(const nlohmann::json& claim);

}  // namespace sluice::api
