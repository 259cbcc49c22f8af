#include "src/kube/fake/kind.h"

#include <nlohmann/json.hpp>

#include "src/kube/fake/pod_fields.h"
#include "src/kube/fake/pod_resize.h"
#include "src/kube/json_member.h"

namespace sluice::kube::fake {
namespace {

using Violations = std::vector<Violation>;

void set_default(Json& object, const char* member, Json value) {
  if (!object.contains(member) || object[member].is_null()) object[member] = std::move(value);
}

std::string base64(const std::string& bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

void immutable(const Json& object, const Json& before, const char* pointer, const std::string& field,
               Violations& found) {
  if (value_at(object, pointer) != value_at(before, pointer))
    found.push_back({field, "FieldValueInvalid", "Invalid value: field is immutable"});
}

// ---- pods
void default_pod_spec(Json& spec, const char* restart_policy) {
  set_default(spec, "restartPolicy", restart_policy);
  set_default(spec, "terminationGracePeriodSeconds", 30);
}

void default_pod(Json& pod, const Json* before) {
  default_pod_spec(pod["spec"], "Always");
  if (before == nullptr) pod["status"] = {{"phase", "Pending"}, {"qosClass", qos_class(pod)}};
}

void check_containers(const Json& spec, const std::string& path, Violations& found) {
  const Json& containers = value_at(spec, "/containers");
  if (!containers.is_array() || containers.empty()) {
    found.push_back({path + ".containers", "FieldValueRequired", "Required value"});
    return;
  }
  for (std::size_t index = 0; index < containers.size(); ++index) {
    const std::string place = path + ".containers[" + std::to_string(index) + "]";
    for (const char* member : {"name", "image"})
      if (!containers[index].contains(member))
        found.push_back({place + "." + member, "FieldValueRequired", "Required value"});
  }
}

void check_pod(const Json& pod, const Json* before, Violations& found) {
  check_containers(value_at(pod, "/spec"), "spec", found);
  if (before == nullptr) return;
  // Images, deadlines and tolerations may change; nothing that this project writes does. Binding sets nodeName.
  const Json& now = value_at(pod, "/spec");
  const Json& then = value_at(*before, "/spec");
  const bool is_bound = now.contains("nodeName") && !then.contains("nodeName");
  Json unbound = is_bound ? now : Json();
  if (is_bound) unbound.erase("nodeName");
  if ((is_bound ? unbound : now) != then)
    found.push_back({"spec", "FieldValueForbidden", "Forbidden: pod updates may not change fields other than a few"});
}

// ---- jobs
void default_job(Json& job, const Json* before) {
  Json& spec = job["spec"];
  set_default(spec, "completions", 1);
  set_default(spec, "parallelism", 1);
  set_default(spec, "backoffLimit", 6);
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  default_pod_spec(spec["template"]["spec"], "Always");
  if (before != nullptr || !job["metadata"].contains("uid")) return;
  const std::string uid = job["metadata"]["uid"];
  Json& labels = spec["template"]["metadata"]["labels"];
  for (const char* prefix : {"", "batch.kubernetes.io/"}) {
    labels[std::string(prefix) + "controller-uid"] = uid;
    labels[std::string(prefix) + "job-name"] = job["metadata"]["name"];
  }
  spec["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid;
}

void check_job(const Json& job, const Json* before, Violations& found) {
  const Json& policy = value_at(job, "/spec/template/spec/restartPolicy");
  if (policy != "Never" && policy != "OnFailure")
    found.push_back({"spec.template.spec.restartPolicy", "FieldValueRequired",
                     "Required value: valid values: \"OnFailure\", \"Never\""});
  check_containers(value_at(job, "/spec/template/spec"), "spec.template.spec", found);
  if (before == nullptr) return;
  immutable(job, *before, "/spec/template", "spec.template", found);
  immutable(job, *before, "/spec/selector", "spec.selector", found);
  immutable(job, *before, "/spec/completionMode", "spec.completionMode", found);
  // An Indexed Job may grow and shrink, with its parallelism.
  if (value_at(job, "/spec/completionMode") != "Indexed" ||
      value_at(job, "/spec/completions") != value_at(job, "/spec/parallelism"))
    immutable(job, *before, "/spec/completions", "spec.completions", found);
}

// ---- services, secrets, leases, events
void default_service(Json& service, const Json*) {
  Json& spec = service["spec"];
  set_default(spec, "type", "ClusterIP");
  set_default(spec, "sessionAffinity", "None");
  for (Json& port : spec["ports"]) {
    set_default(port, "protocol", "TCP");
    set_default(port, "targetPort", port.value("port", Json()));
  }
  if (spec["ports"].is_null()) spec.erase("ports");
}

void check_service(const Json& service, const Json* before, Violations& found) {
  const Json& ports = value_at(service, "/spec/ports");
  if (ports.is_array()) {
    for (std::size_t index = 0; index < ports.size(); ++index) {
      const Json& port = value_at(ports[index], "/port");
      if (!port.is_number_integer() || port < 1 || port > 65535)
        found.push_back({"spec.ports[" + std::to_string(index) + "].port", "FieldValueInvalid",
                         "Invalid value: " + port.dump() + ": must be between 1 and 65535, inclusive"});
    }
  } else if (value_at(service, "/spec/clusterIP") != "None") {
    found.push_back({"spec.ports", "FieldValueRequired", "Required value"});
  }
  if (before != nullptr) immutable(service, *before, "/spec/clusterIP", "spec.clusterIPs[0]", found);
}

void default_secret(Json& secret, const Json*) {
  set_default(secret, "type", "Opaque");
  const Json texts = secret.value("stringData", Json::object());
  secret.erase("stringData");
  for (const auto& [name, text] : texts.items()) secret["data"][name] = base64(text.get<std::string>());
}

void check_secret(const Json& secret, const Json* before, Violations& found) {
  if (value_at(secret, "/type") == "kubernetes.io/tls")
    for (const char* name : {"tls.crt", "tls.key"})
      if (!value_at(secret, "/data").contains(name))
        found.push_back({"data[" + std::string(name) + "]", "FieldValueRequired", "Required value"});
  if (before == nullptr) return;
  immutable(secret, *before, "/type", "type", found);
  if (value_at(*before, "/immutable") != true) return;
  if (value_at(secret, "/immutable") != true)
    found.push_back({"immutable", "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"});
  if (value_at(secret, "/data") != value_at(*before, "/data"))
    found.push_back({"data", "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"});
}

void check_claim(const Json& claim, const Json* before, Violations& found) {
  const Json& modes = value_at(claim, "/spec/accessModes");
  if (!modes.is_array() || modes.empty())
    found.push_back({"spec.accessModes", "FieldValueRequired", "Required value: at least 1 access mode is required"});
  if (before != nullptr && modes != value_at(*before, "/spec/accessModes"))
    found.push_back(
        {"spec", "FieldValueForbidden", "Forbidden: spec is immutable after creation except resources.requests"});
}

void check_lease(const Json& lease, const Json*, Violations& found) {
  const Json& duration = value_at(lease, "/spec/leaseDurationSeconds");
  if (duration.is_number_integer() && duration <= 0)
    found.push_back({"spec.leaseDurationSeconds", "FieldValueInvalid",
                     "Invalid value: " + duration.dump() + ": must be greater than 0"});
}

void check_event(const Json& event, const Json* before, Violations& found) {
  for (const char* member : {"eventTime", "reportingController", "reportingInstance", "action", "reason", "type"})
    if (!event.contains(member)) found.push_back({member, "FieldValueRequired", "Required value"});
  if (before == nullptr) return;
  for (const char* pointer : {"/note", "/reason", "/action", "/regarding", "/type", "/eventTime"})
    immutable(event, *before, pointer, pointer + 1, found);
}

std::unique_ptr<Kind> make(const Resource& resource) {
  auto kind = std::make_unique<Kind>();
  kind->group = resource.group;
  kind->version = resource.version;
  kind->plural = resource.plural;
  kind->name = resource.kind;
  kind->namespaced = resource.namespaced;
  return kind;
}

}  // namespace

// Only the operator reads them.
constexpr Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
constexpr Resource kLimitRanges{"", "v1", "limitranges", "LimitRange"};
constexpr Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
constexpr Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};

std::vector<std::unique_ptr<Kind>> builtin_kinds() {
  std::vector<std::unique_ptr<Kind>> kinds;
  const auto add = [&](const Resource& resource) -> Kind& { return *kinds.emplace_back(make(resource)); };
  for (const Resource& plain : {kConfigMaps, kNodes, kNamespaces, kResourceQuotas, kLimitRanges}) add(plain);
  kinds[1]->has_status = kinds[2]->has_status = kinds[3]->has_status = true;

  Kind& pods = add(kPods);
  pods.has_status = pods.counts_generations = pods.is_graceful = true;
  pods.set_defaults = default_pod;
  pods.check = check_pod;
  pods.fields = pod_fields();

  Kind& jobs = add(kJobs);
  jobs.has_status = jobs.counts_generations = true;
  jobs.set_defaults = default_job;
  jobs.check = check_job;
  jobs.fields = job_fields();

  Kind& services = add(kServices);
  services.has_status = true;
  services.set_defaults = default_service;
  services.check = check_service;

  Kind& secrets = add(kSecrets);
  secrets.set_defaults = default_secret;
  secrets.check = check_secret;

  Kind& claims = add(kPersistentVolumeClaims);
  claims.has_status = true;
  claims.check = check_claim;

  add(kNetworkPolicies).counts_generations = true;
  add(kLeases).check = check_lease;
  add(kEvents).check = check_event;
  return kinds;
}

std::unique_ptr<Kind> custom_kind(Crd crd) {
  auto kind = std::make_unique<Kind>();
  kind->group = std::move(crd.group);
  kind->version = std::move(crd.version);
  kind->plural = std::move(crd.plural);
  kind->name = std::move(crd.kind);
  kind->namespaced = crd.namespaced;
  kind->has_status = crd.has_status;
  kind->counts_generations = true;
  kind->scale = std::move(crd.scale);
  kind->schema = std::move(crd.schema);
  return kind;
}

}  // namespace sluice::kube::fake
