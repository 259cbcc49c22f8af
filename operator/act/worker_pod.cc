#include "operator/act/worker_pod.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/observe/training_job_view.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::field;
using observe::text_field;

namespace {

// A draining worker finishes what it has; the kubelet kills it a little later, should it hang.
constexpr int kGraceSeconds = 30;
constexpr int kDrainSeconds = 25;

// A toleration of, or a request for, GPUs would keep workers on GPU nodes or make them wait for a GPU: only tolerations
// are inherited, and they only permit.
constexpr const char* kInheritedPodFields[] = {"imagePullSecrets", "tolerations", "nodeSelector", "hostAliases",
                                               "dnsPolicy",        "dnsConfig",   "schedulerName"};

bool is_mounted(const json& container, const std::string& volume) {
  const json& mounts = field(container, "/volumeMounts");
  if (!mounts.is_array()) return false;
  for (const json& mount : mounts)
    if (text_field(mount, "/name") == volume) return true;
  return false;
}

json worker_container(const json& training_job, const json& trainer_container) {
  const std::string job = text_field(training_job, "/metadata/name");
  const std::string name_space = text_field(training_job, "/metadata/namespace");
  json container = executor_container(kWorkerContainer, trainer_container);
  container["command"] = bundle_command("sluice-worker");
  container["args"] = {"--listen",
                       "0.0.0.0:" + std::to_string(kWorkerPort),
                       "--metrics-address",
                       "0.0.0.0:" + std::to_string(kMetricsPort),
                       "--tls-dir",
                       kTlsPath,
                       "--job",
                       job,
                       "--namespace",
                       name_space,
                       "--drain-seconds",
                       std::to_string(kDrainSeconds),
                       "--python-path",
                       std::string(kBundlePath) + "/python"};
  set_variable(container["env"], "SLUICE_JOB", job);
  set_variable(container["env"], "SLUICE_NAMESPACE", name_space);
  container["resources"] = field(training_job, "/spec/dataWorkers/resources");
  container["ports"].push_back({{"name", "grpc"}, {"containerPort", kWorkerPort}, {"protocol", "TCP"}});
  container["readinessProbe"] = http_probe("/readyz", 2, 3);
  container["livenessProbe"] = http_probe("/healthz", 10, 6);
  return container;
}

json pod_security_context(const json& trainer_pod) {
  json security = field(trainer_pod, "/securityContext");
  if (!security.is_object()) security = json::object();
  security.erase("sysctls");
  if (field(security, "/seccompProfile").is_null()) security["seccompProfile"] = {{"type", "RuntimeDefault"}};
  return security;
}

}  // namespace

json worker_pod_template(const json& training_job, const Config& config) {
  const std::string job = text_field(training_job, "/metadata/name");
  const json trainer_pod = without_nulls(field(training_job, "/spec/trainer/template/spec"));
  const json& trainer_container = trainer_pod["containers"][observe::training_container_index(training_job)];

  json spec = {{"restartPolicy", "Always"},
               {"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"terminationGracePeriodSeconds", kGraceSeconds},
               {"securityContext", pod_security_context(trainer_pod)},
               {"initContainers", json::array({bundle_container(trainer_pod, trainer_container, config)})},
               {"containers", json::array({worker_container(training_job, trainer_container)})}};
  for (const char* inherited : kInheritedPodFields)
    if (const auto found = trainer_pod.find(inherited); found != trainer_pod.end()) spec[inherited] = *found;

  json volumes = json::array();
  if (const json& user = field(trainer_pod, "/volumes"); user.is_array())
    for (const json& volume : user)
      if (is_mounted(trainer_container, text_field(volume, "/name"))) volumes.push_back(volume);
  for (json& volume : executor_volumes(job)) volumes.push_back(std::move(volume));
  spec["volumes"] = std::move(volumes);

  json metadata = json::object();
  set_labels(metadata, job, kWorkerComponent);
  set_scraped(metadata);
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

}  // namespace sluice::act
