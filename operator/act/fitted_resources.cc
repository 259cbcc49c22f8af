#include "operator/act/fitted_resources.h"

#include <nlohmann/json.hpp>

#include "operator/api/container_draft.h"
#include "operator/api/pod.h"
#include "operator/api/quantity_text.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_size.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

ContainerResources resources_of(const control::BundleResources& bundle) {
  json container;
  ContainerDraft draft(container);
  draft.set_requests(bundle.cpu_request, bundle.memory_request);
  draft.set_limits(bundle.cpu_limit, bundle.memory_limit);
  return read_resources(Container(container).resources());
}

// The first objection to one of these containers; `path` is their list's.
std::string objection_in(const json& containers, const std::string& path, const ContainerBounds& bounds) {
  for (std::size_t index = 0; index < containers.size(); ++index) {
    const ContainerResources resources = read_resources(Container(containers[index]).resources());
    const std::string objection = bounds.objection(resources, path + '[' + std::to_string(index) + "].resources");
    if (!objection.empty()) return objection;
  }
  return "";
}

}  // namespace

control::BundleResources fitted_bundle(const control::BundleResources& bundle, const ContainerBounds& bounds) {
  const ContainerResources written = resources_of(bundle);
  const ContainerResources fitted = bounds.fitted(written);
  if (fitted == written) return bundle;
  return {millicores_text(fitted.request_millicores), memory_text(fitted.request_memory_bytes),
          millicores_text(fitted.limit_millicores), memory_text(fitted.limit_memory_bytes)};
}

json fitted_feeder(const TrainingJob& training_job, const ContainerBounds& bounds) {
  const auto arena_bytes = training_job.arena_bytes();
  if (!has_default_feeder_resources(training_job) || !arena_bytes.ok()) return training_job.feeder_resources();
  const json resources = default_feeder_resources(*arena_bytes);
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
  const PodSpec pod(training_job.trainer_pod());
  const std::string path = "spec.trainer.template.spec.";
  for (const std::string& objection : {objection_in(pod.containers(), path + "containers", bounds),
                                       objection_in(pod.init_containers(), path + "initContainers", bounds)})
    if (!objection.empty()) return objection;
  if (training_job.mode() == "Off") return "";
  const json feeder = fitted_feeder(training_job, bounds);
  return bounds.objection(read_resources(feeder), "spec.feeder.resources");
}

}  // namespace sluice::act
