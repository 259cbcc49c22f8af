#include "operator/observe/pod_trim.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace sluice::observe {

using nlohmann::json;

namespace {

void keep_only(json& object, std::initializer_list<std::string_view> fields) {
  if (!object.is_object()) return;
  json kept = json::object();
  for (const std::string_view field : fields)
    if (const auto found = object.find(field); found != object.end()) kept[std::string(field)] = std::move(*found);
  object = std::move(kept);
}

}  // namespace

void trim_pod(json& pod) {
  if (const auto metadata = pod.find("metadata"); metadata != pod.end() && metadata->is_object())
    metadata->erase("annotations");
  if (const auto spec = pod.find("spec"); spec != pod.end() && spec->is_object()) {
    keep_only(*spec, {"nodeName", "overhead", "resources", "containers", "initContainers"});
    for (const char* list : {"containers", "initContainers"}) {
      const auto containers = spec->find(list);
      if (containers == spec->end() || !containers->is_array()) continue;
      for (json& container : *containers) keep_only(container, {"name", "resources", "restartPolicy"});
    }
  }
  if (const auto status = pod.find("status"); status != pod.end())
    keep_only(*status, {"phase", "reason", "message", "conditions"});
}

}  // namespace sluice::observe
