// Removes the fields of a pod that the operator does not read. It holds every pod of the cluster, and most fields of a
// pod say how to start it. Thread safety: a pure function on its argument.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::api {

// Leaves who the pod is, the node, the containers' requests and host ports, the phase, and the conditions that say what
// is in its way. Of trainers and workers it also leaves who controls them, Sluice's labels, the condition Ready, the
// reasons why containers wait or ended, and the feeder's CPU. Code that reads another field of a pod adds it here.
void trim_pod(nlohmann::json& pod);

}  // namespace sluice::api
