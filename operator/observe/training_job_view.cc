#include "operator/observe/training_job_view.h"

#include <nlohmann/json.hpp>

#include "operator/observe/fields.h"
#include "src/kube/quantity.h"

namespace sluice::observe {
namespace {

using nlohmann::json;

// A quantity in a resource list may be written as a number.
Result<std::int64_t> milli_field(const json& object, std::string_view pointer) {
  const json& value = field(object, pointer);
  if (value.is_null()) return std::int64_t{0};
  const auto parsed = kube::parse_millicores(value.is_string() ? value.get<std::string>() : value.dump());
  if (!parsed.ok()) return parsed.error().with_context(object_key(object) + " " + std::string(pointer));
  return *parsed;
}

Result<Mode> view_mode(const json& object) {
  const std::string text = text_field(object, "/spec/mode", "Auto");
  if (text == "Auto") return Mode::kAuto;
  if (text == "Recommend") return Mode::kRecommend;
  if (text == "Off") return Mode::kOff;
  return invalid_argument(object_key(object) + " spec.mode: \"" + text + "\" is not Auto, Recommend or Off");
}

Result<Placement> view_placement(const json& object) {
  const std::string text = text_field(object, "/spec/dataWorkers/placement", "Auto");
  if (text == "Auto") return Placement::kAuto;
  if (text == "Local") return Placement::kLocal;
  if (text == "Remote") return Placement::kRemote;
  return invalid_argument(object_key(object) + " spec.dataWorkers.placement: \"" + text +
                          "\" is not Auto, Local or Remote");
}

bool counts_gpus(std::string_view resource) { return resource.ends_with("gpu") && resource.find('/') != resource.npos; }

std::int64_t gpus_of_pod(const json& object) {
  std::int64_t gpus = 0;
  for (const json& container : field(object, "/spec/trainer/template/spec/containers")) {
    const json& limits = field(container, "/resources/limits");
    if (!limits.is_object()) continue;
    for (const auto& [resource, amount] : limits.items()) {
      if (!counts_gpus(resource)) continue;
      gpus += kube::parse_bytes(amount.is_string() ? amount.get<std::string>() : amount.dump()).value_or(0);
    }
  }
  return gpus;
}

}  // namespace

Result<TrainingJobView> view_training_job(const json& object) {
  TrainingJobView view;
  view.name_space = text_field(object, "/metadata/namespace");
  view.name = text_field(object, "/metadata/name");
  view.uid = text_field(object, "/metadata/uid");
  view.generation = integer_field(object, "/metadata/generation");
  view.creation_timestamp = text_field(object, "/metadata/creationTimestamp");
  view.deleting = !field(object, "/metadata/deletionTimestamp").is_null();
  view.finished = condition_is_true(object, "Succeeded") || condition_is_true(object, "Failed");
  SLUICE_TRY(view.mode, view_mode(object));
  SLUICE_TRY(view.placement, view_placement(object));
  view.trainer_replicas = static_cast<int>(integer_field(object, "/spec/trainer/replicas", 1));
  view.min_workers = static_cast<int>(integer_field(object, "/spec/dataWorkers/min", 0));
  view.max_workers = static_cast<int>(integer_field(object, "/spec/dataWorkers/max", 8));
  SLUICE_TRY(view.worker_cpu_milli, milli_field(object, "/spec/dataWorkers/resources/requests/cpu"));
  SLUICE_TRY(view.feeder_cpu_milli, milli_field(object, "/spec/feeder/resources/requests/cpu"));
  SLUICE_TRY(view.feeder_cpu_limit_milli, milli_field(object, "/spec/feeder/resources/limits/cpu"));
  view.trainer_gpus = gpus_of_pod(object);
  view.priority = static_cast<int>(integer_field(object, "/spec/priority", 0));
  view.weight = static_cast<int>(integer_field(object, "/spec/weight", 100));
  view.suspend = boolean_field(object, "/spec/suspend");
  if (view.worker_cpu_milli <= 0)
    return invalid_argument(view.key() +
                            " spec.dataWorkers.resources.requests.cpu must be positive; set it, for example 500m");
  return view;
}

std::size_t training_container_index(const json& object) {
  const std::string name = text_field(object, "/spec/trainer/container");
  const json& containers = field(object, "/spec/trainer/template/spec/containers");
  for (std::size_t index = 0; index < containers.size(); ++index)
    if (text_field(containers[index], "/name") == name) return index;
  return 0;
}

}  // namespace sluice::observe
