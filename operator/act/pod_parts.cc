#include "operator/act/pod_parts.h"

#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/fingerprint.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/security_context.h"
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

bool is_ours(std::string_view path) {
  return path == kTemporaryPath || path == kBundlePath || path == kSocketDirectory || path == kTlsPath ||
         path == kCachePath;
}

// Read-only, the runtime could not make our directories below it, and semaphores of Python need shared memory.
bool stays_writable(std::string_view path) { return path == "/dev/shm" || is_above_ours(path); }

void share_mounts(ContainerDraft& container, const json& trainer_container) {
  for (const json& mount : Container(trainer_container).volume_mounts())
    if (const std::string path = tidy_path(VolumeMount(mount).path()); !is_ours(path))
      container.add_mount_like(mount, !stays_writable(path));
}

// The trainer container's own; none where the pod has one that is not root, and the init container gets the pod's.
std::optional<std::int64_t> bundle_user(const json& trainer_pod, const json& trainer_container) {
  if (const std::int64_t user = run_as_user(Container(trainer_container).security_context()); user > 0) return user;
  const bool pod_has_one = run_as_user(PodSpec(trainer_pod).security_context()) > 0;
  return pod_has_one ? std::nullopt : std::optional<std::int64_t>(kSluiceUser);
}

}  // namespace

std::vector<std::string> bundle_command(std::string_view program) {
  const std::string root(kBundlePath);
  return {root + "/lib/loader", "--library-path", root + "/lib", root + "/bin/" + std::string(program)};
}

json bundle_container(const json& trainer_pod, const json& trainer_container, const Config& config) {
  constexpr std::string_view kTarget = "/target";
  std::vector<std::string> command = bundle_command("sluice-worker");
  command.insert(command.end(), {"install", std::string(kTarget)});

  json container;
  ContainerDraft bundle(container);
  bundle.set_name(kBundleContainer);
  bundle.set_image(config.image, config.image_pull_policy);
  bundle.set_command(command);
  bundle.set_requests(config.bundle.cpu_request, config.bundle.memory_request);
  bundle.set_limits(config.bundle.cpu_limit, config.bundle.memory_limit);
  bundle.set_security_context(restricted(bundle_user(trainer_pod, trainer_container)));
  bundle.mount(kBundleVolume, kTarget, false);
  return container;
}

void add_pull_secrets(PodSpecDraft& pod, const Config& config) {
  for (const std::string& name : config.image_pull_secrets) pod.add_pull_secret(name);
}

void prepend_python_path(ContainerDraft& container) {
  container.prepend_to_path("PYTHONPATH", kBundlePythonPath, "SLUICE_USER_PYTHONPATH");
}

ExecutorPorts executor_ports(const json& pod_spec, const Object& training_job, const std::set<std::int64_t>& held) {
  // 9464 is also the port of OpenTelemetry's own exporter: the feeder starts first, and would take it.
  std::set<std::int64_t> taken = declared_ports(pod_spec);
  const auto is_free = [&](int first) { return !taken.contains(first) && !taken.contains(first + 1); };
  if (!PodSpec(pod_spec).on_host_network()) {
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

void begin_executor(ContainerDraft& container, std::string_view name, const json& trainer_container,
                    ExecutorPorts ports) {
  container.set_name(name);
  container.set_security_context(hardened(Container(trainer_container).security_context()));
  container.run_image_of(trainer_container);
  prepend_python_path(container);
  // The bundle's loader would load it into our programs, and end them where it needs a newer C library than theirs.
  container.set_variable("LD_PRELOAD", "");
  // CUDA images ask for every GPU of the node through their environment; executors need none.
  container.set_variable("NVIDIA_VISIBLE_DEVICES", "void");
  container.set_variable("CUDA_VISIBLE_DEVICES", "");

  share_mounts(container, trainer_container);
  container.mount(kBundleVolume, kBundlePath, true);
  container.mount(kTlsVolume, kTlsPath, true);
  container.mount(kTemporaryVolume, kTemporaryPath, false);
  container.add_port("metrics", ports.metrics);
  container.add_port("probes", ports.probes);
}

void add_executor_volumes(PodSpecDraft& pod, std::string_view job) {
  pod.add_empty_volume(kBundleVolume);
  pod.add_empty_volume(kTemporaryVolume);
  pod.add_secret_volume(kTlsVolume, secret_name(job));
}

}  // namespace sluice::act
