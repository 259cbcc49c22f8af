// The subresource "resize" of pods (KEP-1287): CPU and memory of running containers and native sidecars change in
// place. Whatever else such a write says of the pod is ignored, and the pod keeps its QoS class.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/kube/fake/schema.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

// "Guaranteed", "Burstable" or "BestEffort".
std::string qos_class(const Json& pod);

// The part of a pod that a resize sees: names and resources of its containers.
Json resizable_part(const Json& pod);

// `pod` with the resources that `wanted` names for its containers.
Json resized(const Json& pod, const Json& wanted);

// Why `wanted` cannot become of `pod`; empty: it can.
std::vector<Violation> check_resize(const Json& pod, const Json& wanted);

}  // namespace sluice::kube::fake
