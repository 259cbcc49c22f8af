#include "operator/act/pod_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/fingerprint.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// The Sluice image's own user, for pods that leave the user to their images.
constexpr int kSluiceUser = 65532;
// Below the API server's node ports (30000) and Linux's own choice of ports (32768).
constexpr int kFirstHostPort = 20000;
constexpr unsigned long kHostPortPairs = 4000;
constexpr int kPortTries = 100;
constexpr std::string_view kPythonPath = "PYTHONPATH";
constexpr std::string_view kUserPythonPath = "SLUICE_USER_PYTHONPATH";

bool is_ours(std::string_view path) {
  return path == kTemporaryPath || path == kBundlePath || path == kSocketDirectory || path == kTlsPath;
}

// Read-only, the runtime could not make our directories below it, and semaphores of Python need shared memory.
bool stays_writable(std::string_view path) { return path == "/dev/shm" || is_above_ours(path); }

// The user's mounts, read-only. Mount propagation goes: it may need privileges that the executor shall not have.
json read_only_mounts(const json& trainer_container) {
  json mounts = json::array();
  for (json mount : Container(trainer_container).volume_mounts()) {
    const std::string path = tidy_path(text_member(mount, "mountPath"));
    if (is_ours(path)) continue;
    if (!stays_writable(path)) mount["readOnly"] = true;
    mount.erase("mountPropagation");
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// 0 where it is not said.
std::int64_t run_as_user(const json& security_context) {
  const json& user = member(security_context, "runAsUser");
  return user.is_number_integer() ? user.get<std::int64_t>() : 0;
}

json bundle_resources(const control::BundleResources& bundle) {
  return {{"requests", {{"cpu", bundle.cpu_request}, {"memory", bundle.memory_request}}},
          {"limits", {{"cpu", bundle.cpu_limit}, {"memory", bundle.memory_limit}}}};
}

}  // namespace

json volume_mount(std::string_view volume, std::string_view path, bool read_only) {
  json mount = {{"name", volume}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  return mount;
}

json http_probe(std::string_view path, int period_seconds, int failure_threshold) {
  // Five seconds to answer: on a node whose CPU is used up, a healthy program may be slow, and must not be restarted.
  return {{"httpGet", {{"path", path}, {"port", "probes"}}},
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
  const std::int64_t container_user = run_as_user(Container(trainer_container).security_context());
  if (container_user > 0)
    security["runAsUser"] = container_user;
  else if (run_as_user(PodSpec(trainer_pod).security_context()) <=
           0)  // not set, or root, which the init container need not be
    security["runAsUser"] = kSluiceUser;

  json command = bundle_command("sluice-worker");
  command.push_back("install");
  command.push_back("/target");
  return {{"name", kBundleContainer},
          {"image", config.image},
          {"imagePullPolicy", config.image_pull_policy},
          {"command", std::move(command)},
          {"resources", bundle_resources(config.bundle)},
          {"securityContext", std::move(security)},
          {"volumeMounts", json::array({volume_mount(kBundleVolume, "/target", false)})}};
}

void add_pull_secrets(json& pod_spec, const Config& config) {
  for (const std::string& name : config.image_pull_secrets) {
    json& secrets = pod_spec["imagePullSecrets"];
    if (!secrets.is_array()) secrets = json::array();
    const auto is_same = [&](const json& secret) { return text_member(secret, "name") == name; };
    if (std::none_of(secrets.begin(), secrets.end(), is_same)) secrets.push_back({{"name", name}});
  }
}

json hardened_security_context(const json& trainer_container) {
  json security = Container(trainer_container).security_context();
  if (!security.is_object()) security = json::object();
  security.erase("privileged");
  security.erase("procMount");
  security["allowPrivilegeEscalation"] = false;
  security["readOnlyRootFilesystem"] = true;
  security["capabilities"] = {{"drop", {"ALL"}}};
  if (member(security, "seccompProfile").is_null()) security["seccompProfile"] = {{"type", "RuntimeDefault"}};
  // runAsNonRoot is not forced: the executor must be the trainer's user to read its files, and an image whose user is
  // root would not start. Where the pod has to pass "restricted", the user has said runAsNonRoot, and it is inherited.
  return security;
}

void set_variable(json& env, std::string_view name, std::string_view value) {
  json entry = {{"name", name}, {"value", value}};
  bool is_there = false;
  for (json& existing : env) {
    if (member(existing, "name") != name) continue;
    existing = entry;  // each of several, as the last one counts
    is_there = true;
  }
  if (!is_there) env.push_back(std::move(entry));
}

void prepend_python_path(json& container) {
  json& env = container["env"];
  if (!env.is_array()) env = json::array();
  std::size_t after_last = 0;
  for (std::size_t index = 0; index < env.size(); ++index) {
    if (member(env[index], "name") != kPythonPath) continue;
    // Kept under another name, so that a value from a ConfigMap survives, too.
    env[index]["name"] = kUserPythonPath;
    after_last = index + 1;
  }
  const auto joined_with = [](std::string_view name) {
    return json{{"name", kPythonPath}, {"value", std::string(kBundlePythonPath) + ":$(" + std::string(name) + ")"}};
  };
  if (after_last > 0)
    env.insert(env.begin() + static_cast<json::difference_type>(after_last), joined_with(kUserPythonPath));
  else if (imports_variables(container))
    // It may be among these. If it is not, the kubelet leaves the reference as it is: a directory that is not there.
    env.push_back(joined_with(kPythonPath));
  else
    env.push_back({{"name", kPythonPath}, {"value", kBundlePythonPath}});
}

ExecutorPorts executor_ports(const json& pod_spec, const Object& training_job, const std::set<std::int64_t>& held) {
  // 9464 is also the port of OpenTelemetry's own exporter: the feeder starts first, and would take it.
  std::set<std::int64_t> taken = declared_ports(pod_spec);
  const auto is_free = [&](int first) { return !taken.contains(first) && !taken.contains(first + 1); };
  if (member(pod_spec, "hostNetwork") != true) {
    int first = kMetricsPort;
    for (int tries = 0; tries < kPortTries && !is_free(first); ++tries) first += 2;
    return {first, first + 1};
  }
  taken.insert(held.begin(), held.end());
  const std::string hash = api::fingerprint(training_job.key().to_string());
  const unsigned long chosen = std::stoul(hash.substr(0, 8), nullptr, 16);
  int first = 0;
  for (unsigned long tries = 0; tries < kHostPortPairs; ++tries) {
    first = kFirstHostPort + 2 * static_cast<int>((chosen + tries) % kHostPortPairs);
    if (is_free(first)) break;
  }
  return {first, first + 1};
}

json executor_container(std::string_view name, const json& trainer_container, ExecutorPorts ports) {
  json container = {{"name", name}, {"securityContext", hardened_security_context(trainer_container)}};
  for (const char* inherited : {"image", "imagePullPolicy", "env", "envFrom"})
    if (const auto found = trainer_container.find(inherited); found != trainer_container.end())
      container[inherited] = *found;
  prepend_python_path(container);
  json& env = container["env"];
  // The bundle's loader would load it into our programs, and end them where it needs a newer C library than theirs.
  set_variable(env, "LD_PRELOAD", "");
  // CUDA images ask for every GPU of the node through their environment; executors need none.
  set_variable(env, "NVIDIA_VISIBLE_DEVICES", "void");
  set_variable(env, "CUDA_VISIBLE_DEVICES", "");

  json mounts = read_only_mounts(trainer_container);
  mounts.push_back(volume_mount(kBundleVolume, kBundlePath, true));
  mounts.push_back(volume_mount(kTlsVolume, kTlsPath, true));
  mounts.push_back(volume_mount(kTemporaryVolume, kTemporaryPath, false));
  container["volumeMounts"] = std::move(mounts);
  container["ports"] = json::array({{{"name", "metrics"}, {"containerPort", ports.metrics}, {"protocol", "TCP"}},
                                    {{"name", "probes"}, {"containerPort", ports.probes}, {"protocol", "TCP"}}});
  return container;
}

std::vector<json> executor_volumes(std::string_view job) {
  return {{{"name", kBundleVolume}, {"emptyDir", json::object()}},
          {{"name", kTemporaryVolume}, {"emptyDir", json::object()}},
          {{"name", kTlsVolume}, {"secret", {{"secretName", secret_name(job)}}}}};
}

}  // namespace sluice::act
