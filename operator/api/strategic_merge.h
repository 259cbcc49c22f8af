// Kubernetes' strategic merge of a part of a pod template over another one.
//
// Source: the patchStrategy and patchMergeKey tags of k8s.io/api/core/v1. Objects are merged member by member, and null
// removes a member. A list whose elements have a key is merged element by element, and new elements come last. The key
// is the name of containers, init containers, volumes, image pull secrets and env, the path of volume mounts, the
// number of ports and the address of host aliases. Every other list (tolerations, commands, affinity terms) replaces
// the whole list. A volume of the same name is replaced, as a volume has one source only. "$patch" and the like are not
// understood.
//
// Thread safety: pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::api {

// `base` with `patch` over it. Wrongly typed members of `base` are replaced by those of `patch`.
nlohmann::json strategic_merge(nlohmann::json base, const nlohmann::json& patch);

}  // namespace sluice::api
