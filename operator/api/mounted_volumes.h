// The volumes that a container mounts, by names that all pods know (src/pipeline/shared_volumes.h).
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sluice::api {

// The uid of each claim that is known, by its name.
using ClaimUids = std::map<std::string, std::string>;

// The container's mounts, each with the name of what is mounted, as JSON. A claim is named by its uid: a claim is of
// one volume for as long as it lives, and its uid is known before it is bound. An NFS export is named by server and
// path. A subPath is part of the name. Other volumes, claims that are not known, and paths that depend on the pod
// (subPathExpr) have no name: they differ between nodes or pods, or may.
std::string mounted_volumes(const nlohmann::json& pod_spec, const nlohmann::json& container, const ClaimUids& claims);

}  // namespace sluice::api
