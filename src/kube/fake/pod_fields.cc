#include "src/kube/fake/pod_fields.h"

#include <initializer_list>

namespace sluice::kube::fake {
namespace {

using Names = std::initializer_list<const char*>;

Json anything() { return {{"x-kubernetes-preserve-unknown-fields", true}}; }
Json text() { return {{"type", "string"}, {"nullable", true}}; }
Json integer() { return {{"type", "integer"}, {"nullable", true}}; }
Json truth() { return {{"type", "boolean"}, {"nullable", true}}; }
Json list_of(Json items) { return {{"type", "array"}, {"nullable", true}, {"items", std::move(items)}}; }
Json text_by_name() { return {{"type", "object"}, {"nullable", true}, {"additionalProperties", text()}}; }
Json open_object() { return {{"type", "object"}, {"nullable", true}, {"x-kubernetes-preserve-unknown-fields", true}}; }

// With the fields of `others`, which may hold anything, and those of `known`.
Json object_of(Names others, Json known) {
  for (const char* name : others) known[name] = anything();
  return {{"type", "object"}, {"nullable", true}, {"properties", std::move(known)}};
}

Json container() {
  const Json variable = object_of({"valueFrom"}, {{"name", text()}, {"value", text()}});
  const Json mount = object_of({}, {{"readOnly", truth()},
                                    {"name", text()},
                                    {"mountPath", text()},
                                    {"mountPropagation", text()},
                                    {"recursiveReadOnly", text()},
                                    {"subPath", text()},
                                    {"subPathExpr", text()}});
  return object_of(
      {"lifecycle", "livenessProbe", "readinessProbe", "resizePolicy", "restartPolicyRules", "startupProbe", "stdin",
       "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty", "volumeDevices"},
      {{"name", text()},
       {"image", text()},
       {"imagePullPolicy", text()},
       {"restartPolicy", text()},
       {"workingDir", text()},
       {"command", list_of(text())},
       {"args", list_of(text())},
       {"env", list_of(variable)},
       {"envFrom", list_of(open_object())},
       {"ports", list_of(open_object())},
       {"resources", open_object()},
       {"securityContext", open_object()},
       {"volumeMounts", list_of(mount)}});
}

Json pod_spec() {
  return object_of({"affinity", "ephemeralContainers", "os", "overhead", "readinessGates", "resourceClaims",
                    "schedulingGates", "topologySpreadConstraints"},
                   {{"activeDeadlineSeconds", integer()},
                    {"priority", integer()},
                    {"terminationGracePeriodSeconds", integer()},
                    {"automountServiceAccountToken", truth()},
                    {"enableServiceLinks", truth()},
                    {"hostIPC", truth()},
                    {"hostNetwork", truth()},
                    {"hostPID", truth()},
                    {"hostUsers", truth()},
                    {"setHostnameAsFQDN", truth()},
                    {"shareProcessNamespace", truth()},
                    {"containers", list_of(container())},
                    {"initContainers", list_of(container())},
                    {"volumes", list_of(open_object())},
                    {"imagePullSecrets", list_of(open_object())},
                    {"tolerations", list_of(open_object())},
                    {"hostAliases", list_of(open_object())},
                    {"nodeSelector", text_by_name()},
                    {"securityContext", open_object()},
                    {"resources", open_object()},
                    {"dnsConfig", open_object()},
                    {"dnsPolicy", text()},
                    {"hostname", text()},
                    {"hostnameOverride", text()},
                    {"nodeName", text()},
                    {"preemptionPolicy", text()},
                    {"priorityClassName", text()},
                    {"restartPolicy", text()},
                    {"runtimeClassName", text()},
                    {"schedulerName", text()},
                    {"serviceAccount", text()},
                    {"serviceAccountName", text()},
                    {"subdomain", text()}});
}

// A kind whose spec is that.
std::shared_ptr<const Schema> fields_of(Json spec) {
  return Schema::read(object_of({"status", "apiVersion", "kind", "metadata"}, {{"spec", std::move(spec)}})).value();
}

}  // namespace

std::shared_ptr<const Schema> pod_fields() {
  static const auto kFields = fields_of(pod_spec());
  return kFields;
}

std::shared_ptr<const Schema> job_fields() {
  static const auto kFields = [] {
    const Json metadata = {{"type", "object"},
                           {"nullable", true},
                           {"properties", {{"labels", text_by_name()}, {"annotations", text_by_name()}}},
                           {"x-kubernetes-preserve-unknown-fields", true}};
    Json spec = open_object();
    spec["properties"]["template"] = object_of({}, {{"metadata", metadata}, {"spec", pod_spec()}});
    return fields_of(std::move(spec));
  }();
  return kFields;
}

}  // namespace sluice::kube::fake
