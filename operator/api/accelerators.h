// GPUs and other accelerators by the names that their vendors give to resources, labels and taints.
//
// Thread safety: pure functions. Missing or wrongly typed fields count as absent.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::api {

// Of one name, and of a pod: no node has more, and those of all pods of a job are still an int.
inline constexpr std::int64_t kMostDevices = 100'000;

// Extended resources in a resource list: those with a domain, such as nvidia.com/gpu, by name.
std::map<std::string, std::int64_t> devices_in(const nlohmann::json& resource_list);

// Accelerators in a resource list: whole ones (nvidia.com/gpu, amd.com/gpu, habana.ai/gaudi, google.com/tpu ...),
// slices (nvidia.com/mig-1g.5gb) and shared ones (nvidia.com/gpu.shared), one each.
std::int64_t accelerators_in(const nlohmann::json& resource_list);

// Those of one pod, by its containers' limits. If these name none, each claim of dynamic resource allocation that a
// container uses counts as one accelerator: the pod does not say which devices a claim brings (api/device_claim.h).
std::int64_t accelerators_of_pod(const nlohmann::json& pod_spec);

// Those of one container, counted in the same way.
std::int64_t accelerators_of_container(const nlohmann::json& container);

// Whether a node's label or taint tells of its accelerators, such as "nvidia.com/gpu.product",
// "cloud.google.com/gke-accelerator" or "karpenter.k8s.aws/instance-gpu-name".
bool tells_of_accelerators(std::string_view key);

}  // namespace sluice::api
