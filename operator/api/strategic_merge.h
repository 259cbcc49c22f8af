// Kubernetes' strategic merge of a part of a pod template over another one.
//
// Source: the patchStrategy and patchMergeKey tags of k8s.io/api/core/v1. Objects are merged member by member, and null
// removes a member. Lists whose elements have a key (containers, init containers, volumes, image pull secrets by name,
// env by name, volume mounts by path, ports by number, host aliases by address) are merged element by element, and new
// elements come last. Every other list (tolerations, commands, affinity terms) replaces the whole list. A volume of the
// same name is replaced, as a volume has one source only. The directives "$patch" and the like are not understood.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::api {

// `base` with `patch` over it. Wrongly typed members of `base` are replaced by those of `patch`.
nlohmann::json strategic_merge(nlohmann::json base, const nlohmann::json& patch);

}  // namespace sluice::api
