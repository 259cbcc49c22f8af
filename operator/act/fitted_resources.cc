#include "operator/act/fitted_resources.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/container_draft.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/pod_spec_draft.h"
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

// The trainer's pod with the feeder, as far as resources go.
json with_feeder(json pod, const json& resources) {
  if (!pod.is_object()) pod = json::object();  // the spec is refused, and its status is written all the same
  json feeder;
  ContainerDraft container(feeder);
  container.set_name(kFeederContainer);
  container.run_as_sidecar();
  container.set_resources(resources);
  PodSpecDraft(pod).add_init_container(std::move(feeder));
  return pod;
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
  const ContainerResources fitted = bounds.beside({}).fitted(written);
  if (fitted == written) return bundle;
  return {millicores_text(fitted.request_millicores), memory_text(fitted.request_memory_bytes),
          millicores_text(fitted.limit_millicores), memory_text(fitted.limit_memory_bytes)};
}

json fitted_feeder(const TrainingJob& training_job, const ContainerBounds& bounds) {
  const auto arena_bytes = training_job.arena_bytes();
  if (!has_default_feeder_resources(training_job) || !arena_bytes.ok()) return training_job.feeder_resources();
  const json resources = default_feeder_resources(*arena_bytes);
  const ContainerResources written = read_resources(resources);
  const auto breaks_pod = [&](const json& feeder) {
    return !bounds.objection_to_pod(with_feeder(training_job.trainer_pod(), feeder), "").empty();
  };
  const bool breaks_own = !bounds.allow(bounds.filled_in(written));
  if (!breaks_own && !breaks_pod(resources)) return resources;
  // A feeder with less than it needs would not run: then the pod's bound is objected to.
  const ContainerResources beside = bounds.beside(bounds.together(training_job.trainer_pod())).fitted(written);
  const bool suffices = beside.request_millicores >= written.request_millicores &&
                        beside.request_memory_bytes >= written.request_memory_bytes;
  if (suffices && !breaks_pod(render(beside))) return render(beside);
  return breaks_own ? render(bounds.fitted(written)) : resources;
}

std::string objection_to_workers(const TrainingJobWorld& world) {
  const TrainingJob training_job(*world.training_job);
  if (world.limit_ranges.empty()) return "";
  const ContainerBounds bounds(world.limit_ranges);
  if (!training_job.worker_resources().is_null()) {
    const ContainerResources stated = read_resources(training_job.worker_resources());
    if (std::string own = bounds.objection(stated, "spec.dataWorkers.resources"); !own.empty()) return own;
  }
  if (!world.pool) return "";
  const json pod_template = DataWorkerPool(*world.pool).pod_template();
  return bounds.objection_to_pod(pod_of_template(pod_template), "a worker's pod");
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
  const json& trainer_pod = training_job.trainer_pod();
  if (training_job.mode() == "Off") return bounds.objection_to_pod(trainer_pod, "a trainer's pod");
  const json feeder = fitted_feeder(training_job, bounds);
  if (std::string own = bounds.objection(read_resources(feeder), "spec.feeder.resources"); !own.empty()) return own;
  return bounds.objection_to_pod(with_feeder(trainer_pod, feeder), "a trainer's pod");
}

}  // namespace sluice::act
