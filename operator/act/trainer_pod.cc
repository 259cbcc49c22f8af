#include "operator/act/trainer_pod.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/act/rendezvous.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"
#include "operator/api/training_job.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// Limits of the pod as a whole (KEP-2837) bound each container. A larger one of its own keeps the container from
// starting where nodes have cgroup v1: the kernel refuses a quota above that of the pod.
json bounded_by_pod(json container, const json& pod_spec) {
  const json& of_pod = member(member(pod_spec, "resources"), "limits");
  json& limits = container["resources"]["limits"];
  if (of_pod.is_object())
    for (const auto& [resource, limit] : of_pod.items()) limits.erase(resource);
  return container;
}

Result<json> feeder_arguments(const TrainingJob& training_job, FeederRole role, ExecutorPorts ports) {
  const std::string job = training_job.name();
  const std::string name_space = training_job.name_space();
  SLUICE_TRY(const std::int64_t arena, training_job.arena_bytes());
  json arguments = json::array(
      {"--socket", kSocketPath, "--job", job, "--namespace", name_space, "--metrics-address",
       "0.0.0.0:" + std::to_string(ports.metrics), "--probes-address", "0.0.0.0:" + std::to_string(ports.probes),
       "--tls-dir", kTlsPath, "--python-path", kBundlePythonPath, "--arena-bytes", std::to_string(arena),
       // With placement Local, too: it may be set to another one while the trainer runs.
       "--workers", service_name(job) + "." + name_space + ".svc:" + std::to_string(kWorkerPort)});
  if (role == FeederRole::kBridges) {
    arguments.push_back("--threads");
    arguments.push_back("1");
  }
  return arguments;
}

// Where an init container has put files into the volume that the trainer has at /tmp, the feeder has that one there.
void share_filled_temporary_volume(const json& trainer_pod, const json& trainer_container, json& feeder) {
  for (const json& mount : Container(trainer_container).volume_mounts()) {
    if (tidy_path(text_member(mount, "mountPath")) != kTemporaryPath) continue;
    for (const json& init : PodSpec(trainer_pod).init_containers())
      if (Container(init).mounts(text_member(mount, "name")))
        for (json& own : feeder["volumeMounts"])
          if (text_member(own, "mountPath") == kTemporaryPath) own = mount;
  }
}

Result<json> feeder_container(const TrainingJob& training_job, const json& trainer_pod, const json& trainer_container,
                              FeederRole role, ExecutorPorts ports) {
  json container = executor_container(kFeederContainer, trainer_container, ports);
  share_filled_temporary_volume(trainer_pod, trainer_container, container);
  container["restartPolicy"] = "Always";  // a native sidecar
  container["command"] = bundle_command("sluice-feeder");
  SLUICE_TRY(container["args"], feeder_arguments(training_job, role, ports));
  container["volumeMounts"].push_back(volume_mount(kSocketVolume, kSocketDirectory, false));
  if (const json& resources = training_job.feeder_resources(); resources.is_object())
    container["resources"] = resources;
  // No startup probe: the kubelet would start the trainer 1.8 s later. The client waits for the socket, and a feeder
  // that cannot start does not stop the trainer.
  return container;
}

void connect_trainer(json& container, const TrainingJob& training_job) {
  prepend_python_path(container);
  json& env = container["env"];
  set_variable(env, "SLUICE_FEEDER_SOCKET", kSocketPath);
  set_variable(env, "SLUICE_JOB", training_job.name());
  set_variable(env, "SLUICE_NAMESPACE", training_job.name_space());
  json& mounts = container["volumeMounts"];
  if (!mounts.is_array()) mounts = json::array();
  mounts.push_back(volume_mount(kBundleVolume, kBundlePath, true));
  mounts.push_back(volume_mount(kSocketVolume, kSocketDirectory, false));
}

void append(json& object, const char* list, json item) {
  json& target = object[list];
  if (!target.is_array()) target = json::array();
  target.push_back(std::move(item));
}

}  // namespace

Result<json> trainer_pod_template(const TrainingJob& training_job, FeederRole role, const Config& config,
                                  const std::set<std::int64_t>& held_host_ports) {
  json pod = without_nulls(training_job.trainer_template());
  json& spec = pod["spec"];
  json& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  set_labels(metadata, training_job.name(), kTrainerComponent);
  // Of a gang the first failure is the last in either case, and with OnFailure the Job controller takes a restart of
  // the feeder for one.
  if (PodSpec(spec).restart_policy().empty() || training_job.is_gang()) spec["restartPolicy"] = "Never";
  const std::size_t index = training_job.training_container_index();
  const bool is_alone = training_job.trainer_replicas() == 1;
  if (role == FeederRole::kNone) {
    if (!is_alone) add_rendezvous(spec, spec["containers"][index], training_job);
    return pod;
  }

  const json trainer_container = spec["containers"][index];  // as the user wrote it
  const json trainer_pod = spec;
  const ExecutorPorts ports = executor_ports(trainer_pod, training_job, held_host_ports);
  connect_trainer(spec["containers"][index], training_job);
  if (!is_alone) add_rendezvous(spec, spec["containers"][index], training_job);
  append(spec, "initContainers", bounded_by_pod(bundle_container(trainer_pod, trainer_container, config), trainer_pod));
  SLUICE_TRY(json feeder, feeder_container(training_job, trainer_pod, trainer_container, role, ports));
  append(spec, "initContainers", std::move(feeder));
  add_pull_secrets(spec, config);
  for (json& volume : executor_volumes(training_job.name())) append(spec, "volumes", std::move(volume));
  append(spec, "volumes", {{"name", kSocketVolume}, {"emptyDir", json::object()}});
  // With the default policy (which templates that were exported spell out) a pod on the node's network asks the node's
  // name server, which knows no Service.
  const std::string dns_policy = text_member(trainer_pod, "dnsPolicy");
  if (member(trainer_pod, "hostNetwork") == true && (dns_policy.empty() || dns_policy == "ClusterFirst"))
    spec["dnsPolicy"] = "ClusterFirstWithHostNet";
  set_scraped(metadata, ports.metrics);
  return pod;
}

}  // namespace sluice::act
