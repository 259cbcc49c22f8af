#include "operator/api/pod_trim.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/api/fields.h"
#include "operator/api/names.h"

namespace sluice::api {

using nlohmann::json;

namespace {

void keep_only(json& object, std::initializer_list<std::string_view> fields) {
  if (!object.is_object()) return;
  json kept = json::object();
  for (const std::string_view field : fields)
    if (const auto found = object.find(field); found != object.end()) kept[std::string(field)] = std::move(*found);
  object = std::move(kept);
}

// Of a container's state: what it waits for, or why it ended.
void trim_state(json& container, const char* state) {
  if (!container.is_object() || !container.contains(state)) return;
  keep_only(container[state], {"waiting", "terminated"});
  if (container[state].is_object() && container[state].contains("terminated"))
    keep_only(container[state]["terminated"], {"reason"});
}

// Of the containers' statuses: their states, and of the feeder what it has been resized to.
void trim_statuses(json& status) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    if (!status.contains(list) || !status[list].is_array()) continue;
    for (json& container : status[list]) {
      const std::string name = text_field(container, "/name");
      if (name == kFeederContainer)
        keep_only(container, {"name", "state", "resources"});
      else if (name == kWorkerContainer)
        keep_only(container, {"name", "state", "lastState"});
      else
        keep_only(container, {"state"});
      trim_state(container, "state");
      trim_state(container, "lastState");
    }
  }
}

}  // namespace

void trim_pod(json& pod) {
  if (const auto metadata = pod.find("metadata"); metadata != pod.end() && metadata->is_object())
    metadata->erase("annotations");
  if (const auto spec = pod.find("spec"); spec != pod.end() && spec->is_object()) {
    if (text_field(*spec, "/nodeName").empty())
      keep_only(*spec, {"nodeSelector", "affinity", "tolerations", "schedulingGates", "overhead", "resources",
                        "containers", "initContainers"});
    else
      keep_only(*spec, {"nodeName", "overhead", "resources", "containers", "initContainers"});
    for (const char* list : {"containers", "initContainers"}) {
      const auto containers = spec->find(list);
      if (containers == spec->end() || !containers->is_array()) continue;
      for (json& container : *containers) keep_only(container, {"name", "resources", "restartPolicy"});
    }
  }
  if (const auto status = pod.find("status"); status != pod.end() && status->is_object()) {
    keep_only(*status, {"phase", "reason", "message", "conditions", "qosClass", "nominatedNodeName",
                        "initContainerStatuses", "containerStatuses"});
    trim_statuses(*status);
  }
}

}  // namespace sluice::api
