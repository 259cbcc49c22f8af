#include "operator/act/pod_parts.h"

#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::field;
using observe::integer_field;

namespace {

// The Sluice image's own user, for pods that leave the user to their images.
constexpr int kSluiceUser = 65532;
constexpr std::string_view kPythonPath = "/opt/sluice/python";
constexpr std::string_view kUserPythonPath = "SLUICE_USER_PYTHONPATH";

bool mounts_over_ours(const std::string& path) {
  return path == "/tmp" || path == kBundlePath || path == kSocketDirectory || path == kTlsPath;
}

// The user's mounts, read-only. Mount propagation goes: it may need privileges that the executor shall not have.
json read_only_mounts(const json& trainer_container) {
  json mounts = json::array();
  const json& user = field(trainer_container, "/volumeMounts");
  if (!user.is_array()) return mounts;
  for (json mount : user) {
    if (mounts_over_ours(observe::text_field(mount, "/mountPath"))) continue;
    mount["readOnly"] = true;
    mount.erase("mountPropagation");
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace

json volume_mount(std::string_view volume, std::string_view path, bool read_only) {
  json mount = {{"name", volume}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  return mount;
}

json http_probe(std::string_view path, int period_seconds, int failure_threshold) {
  // Five seconds to answer: on a node whose CPU is used up, a healthy program may be slow, and must not be restarted.
  return {{"httpGet", {{"path", path}, {"port", "metrics"}}},
          {"periodSeconds", period_seconds},
          {"timeoutSeconds", 5},
          {"failureThreshold", failure_threshold}};
}

json bundle_command(std::string_view program) {
  const std::string root(kBundlePath);
  return json::array(
      {root + "/lib/ld-linux-x86-64.so.2", "--library-path", root + "/lib", root + "/bin/" + std::string(program)});
}

json bundle_container(const json& trainer_pod, const json& trainer_container, const Config& config) {
  json security = {{"runAsNonRoot", true},
                   {"allowPrivilegeEscalation", false},
                   {"readOnlyRootFilesystem", true},
                   {"capabilities", {{"drop", {"ALL"}}}},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  const std::int64_t container_user = integer_field(trainer_container, "/securityContext/runAsUser");
  const std::int64_t pod_user = integer_field(trainer_pod, "/securityContext/runAsUser");
  if (container_user > 0)
    security["runAsUser"] = container_user;
  else if (pod_user <= 0)  // not set, or root, which the init container need not be
    security["runAsUser"] = kSluiceUser;

  json command = bundle_command("sluice-worker");
  command.push_back("install");
  command.push_back("/target");
  return {{"name", kBundleContainer},
          {"image", config.image},
          {"imagePullPolicy", config.image_pull_policy},
          {"command", std::move(command)},
          {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "32Mi"}}}}},
          {"securityContext", std::move(security)},
          {"volumeMounts", json::array({volume_mount(kBundleVolume, "/target", false)})}};
}

json hardened_security_context(const json& trainer_container) {
  json security = field(trainer_container, "/securityContext");
  if (!security.is_object()) security = json::object();
  security.erase("privileged");
  security.erase("procMount");
  security["allowPrivilegeEscalation"] = false;
  security["readOnlyRootFilesystem"] = true;
  security["capabilities"] = {{"drop", {"ALL"}}};
  if (field(security, "/seccompProfile").is_null()) security["seccompProfile"] = {{"type", "RuntimeDefault"}};
  // runAsNonRoot is not forced: the executor must be the trainer's user to read its files, and an image whose user is
  // root would not start. Where the pod has to pass "restricted", the user has said runAsNonRoot, and it is inherited.
  return security;
}

void set_variable(json& env, std::string_view name, std::string_view value) {
  json entry = {{"name", name}, {"value", value}};
  for (json& existing : env) {
    if (observe::text_field(existing, "/name") != name) continue;
    existing = std::move(entry);
    return;
  }
  env.push_back(std::move(entry));
}

void prepend_python_path(json& env) {
  for (std::size_t index = 0; index < env.size(); ++index) {
    if (observe::text_field(env[index], "/name") != "PYTHONPATH") continue;
    // Kept under another name, so that a value from a ConfigMap survives, too.
    env[index]["name"] = kUserPythonPath;
    const json joined = {{"name", "PYTHONPATH"},
                         {"value", std::string(kPythonPath) + ":$(" + std::string(kUserPythonPath) + ")"}};
    env.insert(env.begin() + static_cast<json::difference_type>(index) + 1, joined);
    return;
  }
  env.push_back({{"name", "PYTHONPATH"}, {"value", kPythonPath}});
}

json executor_container(std::string_view name, const json& trainer_container) {
  json container = {{"name", name}, {"securityContext", hardened_security_context(trainer_container)}};
  for (const char* inherited : {"image", "imagePullPolicy", "env", "envFrom"})
    if (const auto found = trainer_container.find(inherited); found != trainer_container.end())
      container[inherited] = *found;
  json& env = container["env"];
  if (!env.is_array()) env = json::array();
  prepend_python_path(env);
  // CUDA images ask for every GPU of the node through their environment; executors need none.
  set_variable(env, "NVIDIA_VISIBLE_DEVICES", "void");
  set_variable(env, "CUDA_VISIBLE_DEVICES", "");

  json mounts = read_only_mounts(trainer_container);
  mounts.push_back(volume_mount(kBundleVolume, kBundlePath, true));
  mounts.push_back(volume_mount(kTlsVolume, kTlsPath, true));
  mounts.push_back(volume_mount(kTemporaryVolume, "/tmp", false));
  container["volumeMounts"] = std::move(mounts);
  container["ports"] = json::array({{{"name", "metrics"}, {"containerPort", kMetricsPort}, {"protocol", "TCP"}}});
  return container;
}

std::vector<json> executor_volumes(std::string_view job) {
  return {{{"name", kBundleVolume}, {"emptyDir", json::object()}},
          {{"name", kTemporaryVolume}, {"emptyDir", json::object()}},
          {{"name", kTlsVolume}, {"secret", {{"secretName", secret_name(job)}}}}};
}

}  // namespace sluice::act
