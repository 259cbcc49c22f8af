#include "operator/act/trainer_pod.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/act/rendezvous.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/platform.h"
#include "operator/api/pod.h"
#include "operator/api/quantity_text.h"
#include "operator/api/reserved.h"
#include "operator/api/trainer_template.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_size.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// Limits of the pod as a whole (KEP-2837) bound each container. A larger one of its own keeps the container from
// starting where nodes have cgroup v1: the kernel refuses a quota above that of the pod.
json bounded_by_pod(json container, const json& pod_spec) {
  ContainerDraft(container).leave_limits_to(PodSpec(pod_spec).limits());
  return container;
}

Result<std::vector<std::string>> feeder_arguments(const TrainingJob& training_job, FeederRole role,
                                                  ExecutorPorts ports) {
  const std::string job = training_job.name();
  const std::string name_space = training_job.name_space();
  SLUICE_TRY(const std::int64_t arena, training_job.arena_bytes());
  std::vector<std::string> arguments = {
      "--socket", std::string(kSocketPath), "--job", job, "--namespace", name_space, "--metrics-address",
      "[::]:" + std::to_string(ports.metrics), "--probes-address", "[::]:" + std::to_string(ports.probes), "--tls-dir",
      std::string(kTlsPath), "--python-path", std::string(kBundlePythonPath), "--arena-bytes", std::to_string(arena),
      // With placement Local, too: it may be set to another one while the trainer runs.
      "--workers", service_name(job) + "." + name_space + ".svc:" + std::to_string(kWorkerPort)};
  if (role == FeederRole::kBridges) arguments.insert(arguments.end(), {"--threads", "1"});
  return arguments;
}

// Where an init container has put files into the volume that the trainer has at /tmp, the feeder has that one there.
void share_filled_temporary_volume(const json& trainer_pod, const json& trainer_container, ContainerDraft& feeder) {
  for (const json& mount : Container(trainer_container).volume_mounts()) {
    if (tidy_path(VolumeMount(mount).path()) != kTemporaryPath) continue;
    for (const json& init : PodSpec(trainer_pod).init_containers())
      if (Container(init).mounts(VolumeMount(mount).volume())) feeder.replace_mounts_at(kTemporaryPath, mount);
  }
}

Result<json> feeder_container(const TrainingJob& training_job, const json& trainer_pod, const json& trainer_container,
                              FeederRole role, ExecutorPorts ports) {
  json container;
  ContainerDraft feeder(container);
  begin_executor(feeder, kFeederContainer, trainer_container, ports);
  share_filled_temporary_volume(trainer_pod, trainer_container, feeder);
  feeder.run_as_sidecar();
  feeder.set_command(bundle_command("sluice-feeder"));
  SLUICE_TRY(const auto arguments, feeder_arguments(training_job, role, ports));
  feeder.set_arguments(arguments);
  feeder.mount(kSocketVolume, kSocketDirectory, false);
  if (const json& resources = training_job.feeder_resources(); resources.is_object()) feeder.set_resources(resources);
  // No startup probe: the kubelet would start the trainer 1.8 s later. The client waits for the socket, and a feeder
  // that cannot start does not stop the trainer.
  return container;
}

void connect_trainer(ContainerDraft trainer, const TrainingJob& training_job) {
  prepend_python_path(trainer);
  trainer.set_variable("SLUICE_FEEDER_SOCKET", kSocketPath);
  trainer.set_variable("SLUICE_JOB", training_job.name());
  trainer.set_variable("SLUICE_NAMESPACE", training_job.name_space());
  trainer.mount(kBundleVolume, kBundlePath, true);
  trainer.mount(kSocketVolume, kSocketDirectory, false);
}

// A pod that says its resources as a whole (KEP-2837) must ask for what its containers ask for together, and the feeder
// is one more of them. So its request rises as that of another pod does. Its limit stays.
Result<void> hold_containers(PodSpecDraft& pod) {
  constexpr const char* kPath = "spec.trainer.template.spec.resources";
  const PodSpec spec(pod.spec());
  const ContainerResources said = read_resources(spec.resources());
  const std::int64_t millicores =
      reserved(spec, [](const Container& container) { return container.request_millicores(); });
  const std::int64_t bytes =
      reserved(spec, [](const Container& container) { return container.request_memory_bytes(); });
  const auto too_small = [&](const char* resource, const std::string& limit, const std::string& needed) {
    return invalid_argument(std::string(kPath) + ".limits." + resource + " is " + limit +
                            ", and the pod's containers with the feeder ask for " + needed +
                            "; raise it, or lower spec.feeder.resources.requests." + resource);
  };
  if (said.limit_millicores > 0 && said.limit_millicores < millicores)
    return too_small("cpu", millicores_text(said.limit_millicores), millicores_text(millicores));
  if (said.limit_memory_bytes > 0 && said.limit_memory_bytes < bytes)
    return too_small("memory", memory_text(said.limit_memory_bytes), memory_text(bytes));
  if (said.request_millicores > 0 && said.request_millicores < millicores)
    pod.set_request("cpu", millicores_text(millicores));
  if (said.request_memory_bytes > 0 && said.request_memory_bytes < bytes) pod.set_request("memory", memory_text(bytes));
  return {};
}

// The API server stores objects of up to 1.5 MiB, and answers with nonsense to a larger Job.
Result<void> check_size(const json& pod_template) {
  constexpr std::size_t kMostBytes = 1'400'000;
  const std::size_t bytes = pod_template.dump(-1, ' ', false, json::error_handler_t::replace).size();
  if (bytes <= kMostBytes) return {};
  return invalid_argument(
      "spec.trainer.template makes a pod template of " + std::to_string(bytes / 1000) +
      " kB with the feeder, which has the trainer's variables, too, and Kubernetes stores no Job of "
      "more than " +
      std::to_string(kMostBytes / 1000) + " kB; put variables and arguments into a ConfigMap");
}

// With the default policy (which templates that were exported spell out) a pod on the node's network asks the node's
// name server, which knows no Service.
bool asks_node_for_names(const PodSpec& pod) {
  const std::string policy = pod.dns_policy();
  return pod.on_host_network() && (policy.empty() || policy == "ClusterFirst");
}

}  // namespace

Result<json> trainer_pod_template(const TrainingJob& training_job, FeederRole role, const Config& config,
                                  const std::set<std::int64_t>& held_host_ports) {
  const json said = without_nulls(training_job.trainer_template());  // by the user
  PodTemplateDraft draft(said);
  MetadataDraft metadata = draft.metadata();
  metadata.drop_labels_of_jobs();
  metadata.set_sluice_labels(training_job.name(), kTrainerComponent);
  PodSpecDraft pod = draft.pod();
  // Of a gang the first failure is the last in either case, and with OnFailure the Job controller takes a restart of
  // the feeder for one.
  const json& trainer_pod = pod_of_template(said);
  if (PodSpec(trainer_pod).restart_policy().empty() || training_job.is_gang()) pod.set_restart_policy("Never");
  const bool is_alone = training_job.trainer_replicas() == 1;
  if (role != FeederRole::kNone) connect_trainer(pod.container(training_job.training_container_index()), training_job);
  if (!is_alone) add_rendezvous(pod, training_job);
  if (role == FeederRole::kNone) return draft.take();

  const json& trainer_container = PodSpec(trainer_pod).containers()[training_job.training_container_index()];
  const ExecutorPorts ports = executor_ports(trainer_pod, training_job, held_host_ports);
  pod.add_init_container(bounded_by_pod(bundle_container(trainer_pod, trainer_container, config), trainer_pod));
  SLUICE_TRY(json feeder, feeder_container(training_job, trainer_pod, trainer_container, role, ports));
  pod.add_init_container(std::move(feeder));
  add_pull_secrets(pod, config);
  add_executor_volumes(pod, training_job.name());
  pod.add_empty_volume(kSocketVolume);
  if (asks_node_for_names(PodSpec(trainer_pod))) pod.resolve_services_on_host_network();
  pod.pin_to_platform(architecture_of(training_job, config.architectures));
  SLUICE_TRY_VOID(hold_containers(pod));
  metadata.set_scraped(ports.metrics);
  json made = draft.take();
  SLUICE_TRY_VOID(check_size(made));
  return made;
}

}  // namespace sluice::act
