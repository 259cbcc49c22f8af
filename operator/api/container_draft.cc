#include "operator/api/container_draft.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/labels.h"
#include "operator/api/object.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {

using nlohmann::json;

namespace {

json variable(std::string_view name, std::string_view value) { return {{"name", name}, {"value", value}}; }

json http_probe(std::string_view path, int period_seconds, int failure_threshold) {
  // Five seconds to answer: on a node whose CPU is used up, a healthy program may be slow, and must not be restarted.
  return {{"httpGet", {{"path", path}, {"port", "probes"}}},
          {"periodSeconds", period_seconds},
          {"timeoutSeconds", 5},
          {"failureThreshold", failure_threshold}};
}

bool has(const json& env, std::string_view name) {
  return std::any_of(env.begin(), env.end(), [&](const json& entry) { return name_of(entry) == name; });
}

}  // namespace

json& ContainerDraft::list(const char* name) {
  json& entries = (*container_)[name];
  if (!entries.is_array()) entries = json::array();
  return entries;
}

void ContainerDraft::set_image(std::string_view image, std::string_view pull_policy) {
  (*container_)["image"] = image;
  (*container_)["imagePullPolicy"] = pull_policy;
}

void ContainerDraft::run_image_of(const json& other) {
  for (const char* inherited : {"image", "imagePullPolicy", "env", "envFrom"})
    if (const auto found = other.find(inherited); found != other.end()) (*container_)[inherited] = *found;
}

void ContainerDraft::set_amounts(const char* kind, std::string_view cpu, std::string_view memory) {
  (*container_)["resources"][kind] = {{"cpu", cpu}, {"memory", memory}};
}

void ContainerDraft::leave_limits_to(const json& limits) {
  json& own = (*container_)["resources"]["limits"];
  if (!limits.is_object() || !own.is_object()) return;
  for (const auto& [resource, limit] : limits.items()) own.erase(resource);
}

void ContainerDraft::set_variable(std::string_view name, std::string_view value) {
  json& env = list("env");
  const bool is_there = has(env, name);
  for (json& existing : env)
    if (name_of(existing) == name) existing = variable(name, value);  // each of several, as the last one counts
  if (!is_there) env.push_back(variable(name, value));
}

void ContainerDraft::add_variable(std::string_view name, std::string_view value) {
  if (json& env = list("env"); !has(env, name)) env.push_back(variable(name, value));
}

void ContainerDraft::add_index_variable(std::string_view name) {
  // The Job controller numbers the pods.
  const std::string path = "metadata.annotations['" + std::string(kCompletionIndexAnnotation) + "']";
  if (json& env = list("env"); !has(env, name))
    env.push_back({{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
}

void ContainerDraft::prepend_to_path(std::string_view name, std::string_view directory, std::string_view kept_as) {
  json& env = list("env");
  std::size_t after_last = 0;
  for (std::size_t index = 0; index < env.size(); ++index) {
    if (name_of(env[index]) != name) continue;
    // Renamed and not copied: its value may be that of a ConfigMap.
    env[index]["name"] = kept_as;
    after_last = index + 1;
  }
  const auto before = [&](std::string_view other) {
    return variable(name, std::string(directory) + ":$(" + std::string(other) + ")");
  };
  if (after_last > 0)
    env.insert(env.begin() + static_cast<json::difference_type>(after_last), before(kept_as));
  else if (imports_variables(*container_))
    // It may be among these. If it is not, the kubelet leaves the reference as it is: a directory that is not there.
    env.push_back(before(name));
  else
    env.push_back(variable(name, directory));
}

void ContainerDraft::refer_to_own_resources() { refer_to_resources_of(name_of(*container_), list("env")); }

void ContainerDraft::mount(std::string_view volume, std::string_view path, bool read_only) {
  json mount = {{"name", volume}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  list("volumeMounts").push_back(std::move(mount));
}

void ContainerDraft::add_mount_like(json other, bool read_only) {
  if (read_only) other["readOnly"] = true;
  other.erase("mountPropagation");
  list("volumeMounts").push_back(std::move(other));
}

void ContainerDraft::replace_mounts_at(std::string_view path, const json& mount) {
  for (json& own : list("volumeMounts"))
    if (VolumeMount(own).path() == path) own = mount;
}

void ContainerDraft::remove_mounts_at(const std::set<std::string>& paths) {
  json kept = json::array();
  for (json& mount : list("volumeMounts"))
    if (!paths.contains(VolumeMount(mount).path())) kept.push_back(std::move(mount));
  list("volumeMounts") = std::move(kept);
}

void ContainerDraft::add_port(std::string_view name, int port) {
  list("ports").push_back({{"name", name}, {"containerPort", port}, {"protocol", "TCP"}});
}

void ContainerDraft::set_readiness_probe(std::string_view path, int period_seconds, int failure_threshold) {
  (*container_)["readinessProbe"] = http_probe(path, period_seconds, failure_threshold);
}

void ContainerDraft::set_liveness_probe(std::string_view path, int period_seconds, int failure_threshold) {
  (*container_)["livenessProbe"] = http_probe(path, period_seconds, failure_threshold);
}

void refer_to_resources_of(std::string_view container, json& value) {
  if (value.is_object()) {
    const auto reference = value.find("resourceFieldRef");
    if (reference != value.end() && reference->is_object() && reference->contains("containerName"))
      (*reference)["containerName"] = container;
  }
  if (value.is_structured())
    for (json& element : value) refer_to_resources_of(container, element);
}

}  // namespace sluice::api
