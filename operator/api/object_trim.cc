#include "operator/api/object_trim.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/fields.h"

namespace sluice::api {

using nlohmann::json;

namespace {

// The member of `object`, if that and the member are objects or lists; else null, and of no use.
json* structured(json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || !found->is_structured() ? nullptr : &*found;
}

}  // namespace

void keep_only(json& object, std::initializer_list<std::string_view> members) {
  if (!object.is_object()) return;
  auto& all = object.get_ref<json::object_t&>();
  json::object_t kept;
  for (const std::string_view name : members)
    if (const auto found = all.find(name); found != all.end()) kept.insert(all.extract(found));
  all = std::move(kept);
}

void trim_node(json& node) {
  keep_only(node, {"metadata", "spec", "status"});
  if (json* metadata = structured(node, "metadata")) keep_only(*metadata, {"name", "uid", "resourceVersion", "labels"});
  if (json* spec = structured(node, "spec")) keep_only(*spec, {"unschedulable", "taints"});
  json* status = structured(node, "status");
  if (status == nullptr) return;
  keep_only(*status, {"allocatable", "conditions"});
  json* conditions = structured(*status, "conditions");
  if (conditions == nullptr || !conditions->is_array()) return;
  json kept = json::array();
  for (json& condition : *conditions) {
    if (text_field(condition, "/type") != "Ready") continue;
    keep_only(condition, {"type", "status"});
    kept.push_back(std::move(condition));
  }
  *conditions = std::move(kept);
}

void trim_trainer_job(json& job) {
  keep_only(job, {"metadata", "spec", "status"});
  json* spec = structured(job, "spec");
  if (spec == nullptr) return;
  keep_only(*spec, {"suspend", "completions", "ttlSecondsAfterFinished", "template"});
  json* pod_template = structured(*spec, "template");
  if (pod_template == nullptr) return;
  keep_only(*pod_template, {"spec"});
  json* pod = structured(*pod_template, "spec");
  if (pod == nullptr) return;
  keep_only(*pod, {"hostNetwork", "containers", "initContainers"});
  for (const char* list : {"containers", "initContainers"})
    if (json* containers = structured(*pod, list))
      for (json& container : *containers) keep_only(container, {"ports"});
}

void trim_training_job(json& training_job) {
  json* metadata = structured(training_job, "metadata");
  json* annotations = metadata == nullptr ? nullptr : structured(*metadata, "annotations");
  if (annotations != nullptr && annotations->is_object())
    annotations->erase("kubectl.kubernetes.io/last-applied-configuration");
}

}  // namespace sluice::api
