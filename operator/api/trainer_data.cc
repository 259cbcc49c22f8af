#include "operator/api/trainer_data.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {
namespace {

using nlohmann::json;

bool begins_empty(const json& volume) { return volume.contains("emptyDir") || volume.contains("ephemeral"); }

// The name of the first container that mounts the volume; empty: none does.
std::string mounting(const json& containers, const std::string& volume) {
  for (const json& container : containers)
    if (Container(container).mounts(volume)) return Container(container).name();
  return "";
}

bool has_volume(const json& volumes, const std::string& name) {
  for (const json& volume : volumes)
    if (text_member(volume, "name") == name) return true;
  return false;
}

// Of the trainer's container that trains. Null: there is none.
const json* training_container(const TrainingJob& training_job) {
  const json& containers = training_job.trainer_containers();
  return containers.empty() ? nullptr : &containers[training_job.training_container_index()];
}

// A variable that is in all containers of an indexed Job's pods.
constexpr std::string_view kIndexVariable = "JOB_COMPLETION_INDEX";

// The value is a field of the pod, or may be made from one.
bool is_of_one_pod(const json& variable) {
  const json& source = member(variable, "valueFrom");
  return source.contains("fieldRef") || source.contains("resourceFieldRef") ||
         text_member(variable, "value").find("$(") != std::string::npos;
}

// True if a "$(NAME)" in `expression` differs between pods. A name that is not in the container's env may be in its
// envFrom, which is the same for all.
bool depends_on_pod(const std::string& expression, const json& container) {
  for (std::size_t at = expression.find("$("); at != expression.npos; at = expression.find("$(", at + 2)) {
    const std::string name = expression.substr(at + 2, expression.find(')', at) - at - 2);
    bool known = name != kIndexVariable && imports_variables(container);
    for (const json& variable : list_field(container, "/env"))
      if (text_member(variable, "name") == name) known = !is_of_one_pod(variable);
    if (!known) return true;
  }
  return false;
}

}  // namespace

std::set<std::string> mounts_of_one_pod(const TrainingJob& training_job) {
  std::set<std::string> places;
  const json* container = training_container(training_job);
  if (container == nullptr) return places;
  for (const json& mount : Container(*container).volume_mounts())
    if (depends_on_pod(text_member(mount, "subPathExpr"), *container)) places.insert(text_member(mount, "mountPath"));
  return places;
}

std::string data_only_in_trainer(const TrainingJob& training_job) {
  const json* container = training_container(training_job);
  if (container == nullptr) return "";
  const Container trains(*container);
  const PodSpec trainer(member(training_job.trainer_template(), "spec"));
  const PodSpec worker(member(training_job.worker_template(), "spec"));
  for (const json& volume : trainer.volumes()) {
    const std::string name = text_member(volume, "name");
    if (!begins_empty(volume) || !trains.mounts(name)) continue;
    const std::string filler = mounting(trainer.init_containers(), name);
    if (filler.empty() || has_volume(worker.volumes(), name) || !mounting(worker.init_containers(), name).empty())
      continue;
    return "the init container " + filler + " fills the volume " + name +
           " in the trainer's pod only, so batches are made there only; give the workers such an init container, or a "
           "volume of that name, in spec.dataWorkers.template";
  }
  for (const json& variable : list_field(*container, "/env")) {
    const std::string name = text_field(variable, "/valueFrom/fileKeyRef/volumeName");
    if (name.empty() || has_volume(worker.volumes(), name)) continue;
    return "the variable " + text_member(variable, "name") + " comes from a file in the volume " + name +
           ", which is written in the trainer's pod only (fileKeyRef), so batches are made there only; give the "
           "workers a volume of that name, and an init container that writes the file, in spec.dataWorkers.template";
  }
  const std::set<std::string> own_places = mounts_of_one_pod(training_job);
  for (const json& mount : trains.volume_mounts())
    if (const std::string name = text_member(mount, "name"), place = text_member(mount, "mountPath");
        own_places.contains(place) && !has_volume(worker.volumes(), name))
      return "each pod of the trainer has a directory of its own of the volume " + name + " at " + place +
             " (subPathExpr), so batches are made in the trainer's pod only; if the data set does not read it, set "
             "spec.dataWorkers.template.spec.volumes to [{name: " +
             name + ", emptyDir: {}}]";
  return "";
}

std::vector<MountedClaim> mounted_claims(const TrainingJob& training_job) {
  std::vector<MountedClaim> claims;
  const json* container = training_container(training_job);
  if (container == nullptr) return claims;
  const PodSpec trainer(member(training_job.trainer_template(), "spec"));
  const PodSpec worker(member(training_job.worker_template(), "spec"));
  for (const json& volume : trainer.volumes()) {
    const std::string name = text_member(volume, "name");
    const std::string claim = text_member(member(volume, "persistentVolumeClaim"), "claimName");
    if (!claim.empty() && Container(*container).mounts(name) && !has_volume(worker.volumes(), name))
      claims.push_back({name, claim});
  }
  return claims;
}

std::set<std::string> claims_of_pods(const TrainingJob& training_job) {
  std::set<std::string> claims;
  for (const json* pod_template : {&training_job.trainer_template(), &training_job.worker_template()})
    for (const json& volume : PodSpec(member(*pod_template, "spec")).volumes())
      claims.insert(text_member(member(volume, "persistentVolumeClaim"), "claimName"));
  claims.erase("");
  return claims;
}

std::string data_in_claim(const MountedClaim& mounted, const std::string& reason) {
  return "the volume " + mounted.volume + " is the claim " + mounted.claim + ", " + reason +
         ", so batches are made in the trainer's pod only; use a claim with ReadOnlyMany or ReadWriteMany, or, if the "
         "data set does not read that volume, set spec.dataWorkers.template.spec.volumes to [{name: " +
         mounted.volume + ", emptyDir: {}}]";
}

}  // namespace sluice::api
