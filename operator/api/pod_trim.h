// Removes the fields of a pod that the operator does not read. It holds every pod of the cluster, and most fields of a
// pod say how to start it. Thread safety: a pure function on its argument.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::api {

// Leaves metadata without annotations, the node, the containers' requests, phase, reason, conditions and QoS class. It
// also leaves the reasons why containers wait, and the feeder's CPU. Code that reads another field of a pod adds it
// here.
void trim_pod(nlohmann::json& pod);

}  // namespace sluice::api
