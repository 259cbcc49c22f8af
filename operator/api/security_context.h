// Security contexts of what Sluice adds to pods, as Pod Security "restricted" demands them.
//
// A right that the user's container lacks, Sluice's lacks, too: a pod that passes "restricted" still does.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace sluice::api {

// Of a container that runs the user's code: the trainer container's own, without its privileges.
nlohmann::json hardened(nlohmann::json security_context);

// Of a data worker's pod: the trainer pod's own, without what is for the trainer's node.
nlohmann::json hardened_pod(nlohmann::json security_context);

// Of a container that runs none of the user's code; `user`: by which it runs, where it says so.
nlohmann::json restricted(std::optional<std::int64_t> user);

// The user that a security context names; 0 where it names none.
std::int64_t run_as_user(const nlohmann::json& security_context);

}  // namespace sluice::api
