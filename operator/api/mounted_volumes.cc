#include "operator/api/mounted_volumes.h"

#include <nlohmann/json.hpp>

#include "operator/api/object.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// Empty: it has none.
std::string name_of_volume(const json& volume, const ClaimUids& claims) {
  const json& nfs = member(volume, "nfs");
  // The colons keep an export apart from a folder of another one.
  if (nfs.is_object()) return "nfs " + text_member(nfs, "server") + ":" + text_member(nfs, "path") + ":";
  const auto claim = claims.find(text_member(member(volume, "persistentVolumeClaim"), "claimName"));
  return claim == claims.end() || claim->second.empty() ? "" : "claim " + claim->second;
}

std::string name_of_mount(const json& mount, const json& volumes, const ClaimUids& claims) {
  if (!text_member(mount, "subPathExpr").empty()) return "";
  for (const json& volume : volumes) {
    if (name_of(volume) != VolumeMount(mount).volume()) continue;
    const std::string name = name_of_volume(volume, claims);
    const std::string part = tidy_path("/" + text_member(mount, "subPath"));
    return name.empty() || part == "/" ? name : name + part;
  }
  return "";
}

}  // namespace

std::string mounted_volumes(const json& pod_spec, const json& container, const ClaimUids& claims) {
  json mounts = json::object();
  for (const json& mount : Container(container).volume_mounts())
    mounts[tidy_path(VolumeMount(mount).path())] = name_of_mount(mount, PodSpec(pod_spec).volumes(), claims);
  return mounts.dump();
}

}  // namespace sluice::api
