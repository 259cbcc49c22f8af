// What connects a feeder or a worker to the cache of its node (docs/designs/cache.md): the way, a token that says whose
// pod it is, and the names of the volumes that it shares with other pods.
//
// Thread safety: a pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "operator/api/mounted_volumes.h"
#include "operator/config.h"

namespace sluice::act {

// `pod_template` with all of it for the container of this name, which may be an init container. A variable that the job
// sets itself stays. The template as it is where there is no cache.
nlohmann::json with_node_cache(nlohmann::json pod_template, std::string_view container, std::string_view job,
                               const api::ClaimUids& claims, const control::NodeCache& cache);

}  // namespace sluice::act
