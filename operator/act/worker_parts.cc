#include "operator/act/worker_parts.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "operator/api/names.h"
#include "operator/api/object.h"
#include "operator/api/trainer_data.h"
#include "operator/api/worker_template.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

// Google's drivers put their sidecars into pods that ask for them, and mount nothing where there is none.
constexpr std::string_view kDriversOfAnnotations[] = {"gke-gcsfuse/", "gke-parallelstore/"};

// Every resourceFieldRef below `value`: in a downward API volume it has to name its container.
void name_worker(json& value) {
  if (value.is_object()) {
    const auto reference = value.find("resourceFieldRef");
    if (reference != value.end() && reference->is_object() && reference->contains("containerName"))
      (*reference)["containerName"] = kWorkerContainer;
  }
  if (value.is_structured())
    for (json& element : value) name_worker(element);
}

}  // namespace

json worker_volume(json volume) {
  volume = without_server_tokens(std::move(volume));
  if (volume.contains("ephemeral")) {
    volume.erase("ephemeral");
    volume["emptyDir"] = json::object();
  }
  name_worker(volume);
  return volume;
}

void settle_in(json& container, const TrainingJob& training_job) {
  name_worker(container["env"]);
  json kept = json::array();
  const std::set<std::string> own_places = mounts_of_one_pod(training_job);
  for (json& mount : container["volumeMounts"])
    if (!own_places.contains(text_member(mount, "mountPath"))) kept.push_back(std::move(mount));
  container["volumeMounts"] = std::move(kept);
}

json annotations_of_volumes(const json& trainer_metadata) {
  json found = json::object();
  const json& annotations = member(trainer_metadata, "annotations");
  if (!annotations.is_object()) return found;
  for (const auto& [name, value] : annotations.items())
    for (const std::string_view prefix : kDriversOfAnnotations)
      if (name.starts_with(prefix)) found[name] = value;
  return found;
}

}  // namespace sluice::act
