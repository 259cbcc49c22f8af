// What of a pod nobody here reads. The operator holds every pod of the cluster, and most of a pod is how to start it.
// Thread safety: a pure function on its argument.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::observe {

// Leaves metadata but for its annotations, where the pod runs, what its containers request, its phase, reason and
// conditions. Whoever reads another field of a pod adds it here.
void trim_pod(nlohmann::json& pod);

}  // namespace sluice::observe
