#include "operator/api/pod_trim.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object_trim.h"
#include "operator/api/pod.h"

namespace sluice::api {

using nlohmann::json;

namespace {

bool has_list(const json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_array();
}

// An empty value costs as much as a full one.
void drop_if_empty(json& object, const char* name) {
  if (const auto found = object.find(name); found != object.end() && found->is_structured() && found->empty())
    object.erase(found);
}

// Leaves the elements of a list that `keeps` after it has trimmed them.
template <class Keeps>
void trim_list(json& object, const char* name, const Keeps& keeps) {
  if (!has_list(object, name)) return;
  json kept = json::array();
  for (json& element : object[name])
    if (keeps(element)) kept.push_back(std::move(element));
  object[name] = std::move(kept);
  drop_if_empty(object, name);
}

// Whose pod it is. Of a stranger's pod only its name, its node, what it reserves, and what keeps it off a node counts.
enum class Whose { kTrainers, kWorkers, kStrangers };

Whose whose(const json& pod) {
  const Pod seen(pod);
  if (seen.is_trainer()) return Whose::kTrainers;
  // A worker that has lost its labels is known by its owner.
  return seen.is_worker() || seen.controller().kind == kPoolKind ? Whose::kWorkers : Whose::kStrangers;
}

void trim_metadata(json& metadata, Whose whose) {
  if (whose == Whose::kStrangers)
    return keep_only(metadata, {"name", "namespace", "uid", "resourceVersion", "deletionTimestamp"});
  keep_only(metadata, {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
                       "labels", "ownerReferences"});
  if (!metadata.is_object()) return;
  if (metadata.contains("labels")) keep_only(metadata["labels"], {kComponentLabel, kJobLabel, kTemplateHashLabel});
  drop_if_empty(metadata, "labels");
  trim_list(metadata, "ownerReferences", [](json& owner) {
    keep_only(owner, {"kind", "name", "uid", "controller"});
    return boolean_field(owner, "/controller");
  });
}

// Of the limits those that are read: a feeder's CPU, and devices.
void trim_resources(json& resources, bool is_feeder) {
  keep_only(resources, {"requests", "limits"});
  if (!resources.is_object()) return;
  if (resources.contains("requests")) keep_only(resources["requests"], {"cpu", "memory"});
  if (const auto limits = resources.find("limits"); limits != resources.end() && limits->is_object())
    for (auto limit = limits->begin(); limit != limits->end();)
      limit = is_feeder || limit.key().find('/') != std::string::npos ? std::next(limit) : limits->erase(limit);
  for (const char* name : {"requests", "limits"}) drop_if_empty(resources, name);
}

bool trim_container(json& container) {
  const std::string name = text_field(container, "/name");
  const bool is_ours = name == kFeederContainer || name == kWorkerContainer;
  if (is_ours)
    keep_only(container, {"name", "resources", "restartPolicy", "ports"});
  else
    keep_only(container, {"resources", "restartPolicy", "ports"});
  if (!container.is_object()) return false;
  if (container.contains("resources")) trim_resources(container["resources"], name == kFeederContainer);
  drop_if_empty(container, "resources");
  trim_list(container, "ports", [](json& port) {
    keep_only(port, {"hostPort"});
    return port.is_object() && !port.empty();
  });
  return !container.empty();
}

// Init containers that ask for no more than what runs after them change nothing. Beside sidecars they may.
void drop_small_init_containers(json& spec) {
  const PodSpec pod(spec);
  std::int64_t millicores = 0, bytes = 0;
  for (const json& container : pod.containers()) {
    millicores += Container(container).request_millicores();
    bytes += Container(container).request_memory_bytes();
  }
  const json& initial = pod.init_containers();
  const bool none_counts = std::all_of(initial.begin(), initial.end(), [&](const json& each) {
    const Container container(each);
    return !container.is_sidecar() && container.request_millicores() <= millicores &&
           container.request_memory_bytes() <= bytes && container.devices().empty() && !each.contains("ports");
  });
  if (none_counts) spec.erase("initContainers");
}

// Whether the pod is resized in place, or waits for it; with a `reason`, whether it waits for that one.
bool is_resized(const json& status, std::string_view reason = "") {
  const json& conditions = list_field(status, "/conditions");
  return std::any_of(conditions.begin(), conditions.end(), [&](const json& condition) {
    const std::string type = text_field(condition, "/type");
    return (type == "PodResizePending" || type == "PodResizeInProgress") &&
           text_field(condition, "/status") == "True" && (reason.empty() || text_field(condition, "/reason") == reason);
  });
}

// While a pod is resized in place (KEP-1287), its node holds the larger of what the container has and what it asks for.
// It holds what the container has where the kubelet calls the change infeasible, and the spec goes on asking. Here the
// container asks for what is held. The feeder is no such container: its two figures are read apart (feeder_view.h).
void ask_for_what_is_held(json& container, const json& has, bool is_infeasible) {
  const json& asked = field(container, "/resources/requests");
  if (!has.is_object() || !asked.is_object()) return;
  const bool more_millicores = millicores_field(has, "/cpu") > millicores_field(asked, "/cpu");
  const bool more_bytes = bytes_field(has, "/memory") > bytes_field(asked, "/memory");
  json& asks = container["resources"]["requests"];
  if (has.contains("cpu") && (is_infeasible || more_millicores)) asks["cpu"] = has["cpu"];
  if (has.contains("memory") && (is_infeasible || more_bytes)) asks["memory"] = has["memory"];
}

void ask_for_what_is_held(json& spec, const json& status) {
  if (!is_resized(status) || !has_list(spec, "containers")) return;
  const bool is_infeasible = is_resized(status, "Infeasible");
  for (const json& seen : list_field(status, "/containerStatuses"))
    for (json& container : spec["containers"])
      if (text_field(container, "/name") == text_field(seen, "/name"))
        ask_for_what_is_held(container, field(seen, "/resources/requests"), is_infeasible);
}

void trim_spec(json& spec) {
  if (text_field(spec, "/nodeName").empty())
    keep_only(spec, {"nodeSelector", "affinity", "tolerations", "schedulingGates", "schedulerName", "overhead",
                     "resources", "containers", "initContainers"});
  else
    keep_only(spec, {"nodeName", "overhead", "resources", "containers", "initContainers"});
  for (const char* list : {"containers", "initContainers"}) trim_list(spec, list, trim_container);
  drop_small_init_containers(spec);
}

bool trim_condition(json& condition) {
  const std::string type = text_field(condition, "/type");
  const bool holds = text_field(condition, "/status") == "True";
  if (type == "Ready")
    keep_only(condition, {"type", "status", "lastTransitionTime"});
  else
    keep_only(condition, {"type", "status", "reason", "message"});
  return type == "Ready" || type == "PodResizePending" || (type == "PodScheduled" && !holds);
}

// Of a container's state: what it waits for, and why a worker ended.
void trim_state(json& container, const char* state, bool is_worker) {
  if (!container.contains(state)) return;
  if (is_worker)
    keep_only(container[state], {"waiting", "terminated"});
  else
    keep_only(container[state], {"waiting"});
  if (container[state].is_object() && container[state].contains("terminated"))
    keep_only(container[state]["terminated"], {"reason"});
  drop_if_empty(container, state);
}

// Its states, and of the feeder what it has been resized to, or that its kubelet does not say so.
bool trim_container_status(json& container) {
  const std::string name = text_field(container, "/name");
  const bool is_feeder = name == kFeederContainer;
  const bool is_worker = name == kWorkerContainer;
  if (is_feeder)
    keep_only(container, {"name", "state", "started", "resources"});
  else if (is_worker)
    keep_only(container, {"name", "state", "lastState"});
  else
    keep_only(container, {"state"});
  if (!container.is_object()) return false;
  for (const char* state : {"state", "lastState"}) trim_state(container, state, is_worker);
  return container.size() > (is_feeder || is_worker ? 1 : 0);
}

void trim_status(json& status, Whose whose) {
  if (whose == Whose::kStrangers) {
    keep_only(status, {"phase", "conditions", "nominatedNodeName"});
    trim_list(status, "conditions",
              [](json& condition) { return trim_condition(condition) && text_field(condition, "/type") != "Ready"; });
    return;
  }
  keep_only(status, {"phase", "reason", "conditions", "qosClass", "nominatedNodeName", "initContainerStatuses",
                     "containerStatuses"});
  if (whose == Whose::kWorkers) status.erase("qosClass");  // it tells how a feeder may grow
  trim_list(status, "conditions", trim_condition);
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    trim_list(status, list, trim_container_status);
}

}  // namespace

void trim_pod(json& pod) {
  keep_only(pod, {"metadata", "spec", "status"});
  if (!pod.is_object()) return;
  const Whose owner = whose(pod);
  if (const auto metadata = pod.find("metadata"); metadata != pod.end()) trim_metadata(*metadata, owner);
  if (const auto spec = pod.find("spec"); spec != pod.end() && spec->is_object()) {
    ask_for_what_is_held(*spec, field(pod, "/status"));
    trim_spec(*spec);
  }
  if (const auto status = pod.find("status"); status != pod.end() && status->is_object()) trim_status(*status, owner);
}

}  // namespace sluice::api
