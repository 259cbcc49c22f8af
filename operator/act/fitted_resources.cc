#include "operator/act/fitted_resources.h"

#include <nlohmann/json.hpp>

#include "operator/api/pod.h"
#include "operator/api/quantity_text.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_size.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

// Of the schema, for a TrainingJob that does not say what its feeder gets.
const json& default_feeder_resources() {
  static const json resources = {{"requests", {{"cpu", "250m"}, {"memory", "256Mi"}}}};
  return resources;
}

json as_container(const control::BundleResources& bundle) {
  return {{"requests", {{"cpu", bundle.cpu_request}, {"memory", bundle.memory_request}}},
          {"limits", {{"cpu", bundle.cpu_limit}, {"memory", bundle.memory_limit}}}};
}

}  // namespace

control::BundleResources fitted_bundle(const control::BundleResources& bundle, const ContainerBounds& bounds) {
  const ContainerResources written = read_resources(as_container(bundle));
  const ContainerResources fitted = bounds.fitted(written);
  if (fitted == written) return bundle;
  return {millicores_text(fitted.request_millicores), memory_text(fitted.request_memory_bytes),
          millicores_text(fitted.limit_millicores), memory_text(fitted.limit_memory_bytes)};
}

json fitted_feeder(const json& resources, const ContainerBounds& bounds) {
  if (resources != default_feeder_resources()) return resources;
  const ContainerResources written = read_resources(resources);
  return bounds.allow(bounds.filled_in(written)) ? resources : render(bounds.fitted(written));
}

std::string objection_to_workers(const TrainingJobWorld& world) {
  const TrainingJob training_job(*world.training_job);
  if (world.limit_ranges.empty() || training_job.worker_resources().is_null()) return "";
  return ContainerBounds(world.limit_ranges)
      .objection(read_resources(training_job.worker_resources()), "spec.dataWorkers.resources");
}

std::string objection_to_trainers(const TrainingJobWorld& world) {
  if (world.limit_ranges.empty()) return "";
  const TrainingJob training_job(*world.training_job);
  const ContainerBounds bounds(world.limit_ranges);
  const PodSpec pod(member(training_job.trainer_template(), "spec"));
  const std::pair<const char*, const json*> lists[] = {{"containers", &pod.containers()},
                                                       {"initContainers", &pod.init_containers()}};
  for (const auto& [name, list] : lists) {
    for (std::size_t index = 0; index < list->size(); ++index) {
      const std::string path =
          std::string("spec.trainer.template.spec.") + name + "[" + std::to_string(index) + "].resources";
      const std::string objection = bounds.objection(read_resources(member((*list)[index], "resources")), path);
      if (!objection.empty()) return objection;
    }
  }
  if (training_job.mode() == "Off") return "";
  const json feeder = fitted_feeder(training_job.feeder_resources(), bounds);
  return bounds.objection(read_resources(feeder), "spec.feeder.resources");
}

}  // namespace sluice::act
