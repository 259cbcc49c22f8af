#include "operator/observe/pod_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"
#include "src/kube/timestamp.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

std::int64_t container_request(const json& container) { return millicores_field(container, "/resources/requests/cpu"); }

std::string controller_uid(const json& object) {
  const json& references = field(object, "/metadata/ownerReferences");
  if (!references.is_array()) return "";
  for (const json& reference : references)
    if (boolean_field(reference, "/controller")) return text_field(reference, "/uid");
  return "";
}

// Unix seconds; 0 where the object does not say.
double time_field(const json& object, std::string_view pointer) {
  const auto time = kube::parse_time(text_field(object, pointer));
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

double ready_since(const json& pod) {
  for (const json& condition : field(pod, "/status/conditions"))
    if (text_field(condition, "/type") == "Ready") return time_field(condition, "/lastTransitionTime");
  return 0;
}

scheduler::Worker view_worker(const json& pod) {
  scheduler::Worker worker;
  worker.name = text_field(pod, "/metadata/name");
  worker.node = text_field(pod, "/spec/nodeName");
  worker.ready = condition_is_true(pod, "Ready");
  worker.created_at_seconds = time_field(pod, "/metadata/creationTimestamp");
  if (worker.ready) worker.ready_since_seconds = ready_since(pod);
  worker.draining = !field(pod, "/metadata/deletionTimestamp").is_null();
  return worker;
}

}  // namespace

std::int64_t pod_request_millicores(const json& pod) {
  const std::int64_t overhead = millicores_field(pod, "/spec/overhead/cpu");
  if (!field(pod, "/spec/resources/requests/cpu").is_null())
    return millicores_field(pod, "/spec/resources/requests/cpu") + overhead;
  std::int64_t sidecars = 0;
  std::int64_t initialisation = 0;
  if (const json& containers = field(pod, "/spec/initContainers"); containers.is_array()) {
    for (const json& container : containers) {
      const std::int64_t request = container_request(container);
      const bool is_sidecar = text_field(container, "/restartPolicy") == "Always";
      if (is_sidecar) sidecars += request;
      initialisation = std::max(initialisation, sidecars + (is_sidecar ? 0 : request));
    }
  }
  std::int64_t running = sidecars;
  if (const json& containers = field(pod, "/spec/containers"); containers.is_array())
    for (const json& container : containers) running += container_request(container);
  return std::max(running, initialisation) + overhead;
}

PodView view_pod(const json& pod) {
  const std::string component = text_field(pod, "/metadata/labels/sluice.dev~1component");
  const std::string phase = text_field(pod, "/status/phase");
  PodView view;
  view.controller_uid = controller_uid(pod);
  view.node = text_field(pod, "/spec/nodeName");
  view.request_millicores = pod_request_millicores(pod);
  view.is_trainer = component == control::kTrainerComponent;
  view.finished = phase == "Succeeded" || phase == "Failed";
  view.leaving = !field(pod, "/metadata/deletionTimestamp").is_null();
  view.is_worker = component == control::kWorkerComponent;
  if (view.is_worker) view.worker = view_worker(pod);
  return view;
}

}  // namespace sluice::observe
