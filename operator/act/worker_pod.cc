#include "operator/act/worker_pod.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/act/worker_parts.h"
#include "operator/api/accelerators.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_template.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// A draining worker finishes what it has; the kubelet kills it a little later, should it hang.
constexpr int kGraceSeconds = 30;
constexpr int kDrainSeconds = 25;
// A trainer whose pod is made anew is back before; one that has finished is not.
constexpr int kUnusedSeconds = 600;

constexpr const char* kInheritedPodFields[] = {"imagePullSecrets", "hostAliases", "dnsPolicy", "dnsConfig",
                                               "schedulerName"};

json worker_container(const TrainingJob& training_job, const json& trainer_container) {
  const std::string job = training_job.name();
  const std::string name_space = training_job.name_space();
  json container = executor_container(kWorkerContainer, trainer_container, {kMetricsPort, kProbesPort});
  container["command"] = bundle_command("sluice-worker");
  container["args"] = {"--listen",
                       "0.0.0.0:" + std::to_string(kWorkerPort),
                       "--metrics-address",
                       "0.0.0.0:" + std::to_string(kMetricsPort),
                       "--probes-address",
                       "0.0.0.0:" + std::to_string(kProbesPort),
                       "--tls-dir",
                       kTlsPath,
                       "--job",
                       job,
                       "--namespace",
                       name_space,
                       "--drain-seconds",
                       std::to_string(kDrainSeconds),
                       "--unused-seconds",
                       std::to_string(kUnusedSeconds),
                       "--python-path",
                       kBundlePythonPath};
  settle_in(container, training_job);
  set_variable(container["env"], "SLUICE_JOB", job);
  set_variable(container["env"], "SLUICE_NAMESPACE", name_space);
  const AutoResources sizes = training_job.auto_resources();
  container["resources"] = training_job.worker_resources().is_null() ? render(sizes.resources(sizes.first()))
                                                                     : training_job.worker_resources();
  container["ports"].push_back({{"name", "grpc"}, {"containerPort", kWorkerPort}, {"protocol", "TCP"}});
  container["readinessProbe"] = http_probe("/readyz", 2, 3);
  container["livenessProbe"] = http_probe("/healthz", 10, 6);
  return container;
}

json pod_security_context(const json& trainer_pod) {
  json security = PodSpec(trainer_pod).security_context();
  if (!security.is_object()) security = json::object();
  security.erase("sysctls");
  // Or each worker would give every file of the data set to the group before it starts.
  if (security.contains("fsGroup") && !security.contains("fsGroupChangePolicy"))
    security["fsGroupChangePolicy"] = "OnRootMismatch";
  if (member(security, "seccompProfile").is_null()) security["seccompProfile"] = {{"type", "RuntimeDefault"}};
  return security;
}

// The trainer's, but for what is about GPUs: a worker on a node with GPUs takes CPU from the trainers there.
json node_selector(const json& trainer_pod) {
  json selector = {{std::string(kArchitectureLabel), kArchitecture}};
  for (const auto& [key, value] : PodSpec(trainer_pod).node_selector().items())
    if (!tells_of_accelerators(key)) selector[key] = value;
  return selector;
}

json tolerations(const json& trainer_pod) {
  json kept = json::array();
  for (const json& toleration : PodSpec(trainer_pod).tolerations())
    if (!tells_of_accelerators(text_member(toleration, "key"))) kept.push_back(toleration);
  return kept;
}

}  // namespace

json worker_pod_template(const TrainingJob& training_job, const Config& config) {
  const std::string job = training_job.name();
  const json trainer_pod = without_nulls(member(training_job.trainer_template(), "spec"));
  const json& trainer_container = trainer_pod["containers"][training_job.training_container_index()];

  // A worker that ends because no feeder uses it is not to begin again.
  json spec = {{"restartPolicy", "OnFailure"},
               {"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"terminationGracePeriodSeconds", kGraceSeconds},
               {"securityContext", pod_security_context(trainer_pod)},
               {"initContainers", json::array({bundle_container(trainer_pod, trainer_container, config)})},
               {"containers", json::array({worker_container(training_job, trainer_container)})}};
  for (const char* inherited : kInheritedPodFields)
    if (const auto found = trainer_pod.find(inherited); found != trainer_pod.end()) spec[inherited] = *found;
  add_pull_secrets(spec, config);
  spec["nodeSelector"] = node_selector(trainer_pod);
  if (json kept = tolerations(trainer_pod); !kept.empty()) spec["tolerations"] = std::move(kept);

  if (!config.worker_priority_class.empty()) spec["priorityClassName"] = config.worker_priority_class;

  json volumes = json::array();
  for (const json& volume : PodSpec(trainer_pod).volumes())
    if (Container(trainer_container).mounts(text_member(volume, "name"))) volumes.push_back(worker_volume(volume));
  for (json& volume : executor_volumes(job)) volumes.push_back(std::move(volume));
  spec["volumes"] = std::move(volumes);

  json metadata = json::object();
  metadata["annotations"] = annotations_of_volumes(member(training_job.trainer_template(), "metadata"));
  set_labels(metadata, job, kWorkerComponent);
  set_scraped(metadata, kMetricsPort);
  metadata["annotations"][std::string(kSafeToEvictAnnotation)] = "true";
  json derived = {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
  return without_nulls(with_worker_template(std::move(derived), training_job));
}

}  // namespace sluice::act
