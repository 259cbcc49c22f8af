#include "operator/act/worker_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/act/worker_parts.h"
#include "operator/api/accelerators.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/node_taints.h"
#include "operator/api/platform.h"
#include "operator/api/pod.h"
#include "operator/api/security_context.h"
#include "operator/api/training_job.h"
#include "operator/api/worker_template.h"
#include "operator/api/worker_volume.h"

namespace sluice::act {

using namespace api;
using control::Config;
using nlohmann::json;

namespace {

// A draining worker finishes what it has; the kubelet kills it a little later, should it hang.
constexpr int kGraceSeconds = 30;
constexpr int kDrainSeconds = 25;
// Workers keep nothing that another one could not make, so those of a lost node are replaced soon. By default a pod
// waits there for five minutes.
constexpr int kLostNodeSeconds = 30;
// A trainer whose pod is made anew comes back within that time.
constexpr int kUnusedSeconds = 600;

// A worker's own size where the job states it, else the first one that Sluice would try.
json worker_resources(const TrainingJob& training_job) {
  const AutoResources sizes = training_job.auto_resources();
  const json& stated = training_job.worker_resources();
  return stated.is_null() ? render(sizes.resources(sizes.first())) : stated;
}

// Of both families, as a pod has either or both.
std::string any_address(int port) { return "[::]:" + std::to_string(port); }

json worker_container(const TrainingJob& training_job, const json& trainer_container) {
  const std::string job = training_job.name();
  const std::string name_space = training_job.name_space();
  json container;
  ContainerDraft worker(container);
  begin_executor(worker, kWorkerContainer, trainer_container, {kMetricsPort, kProbesPort});
  worker.set_command(bundle_command("sluice-worker"));
  worker.set_arguments({"--listen", any_address(kWorkerPort), "--metrics-address", any_address(kMetricsPort),
                        "--probes-address", any_address(kProbesPort), "--tls-dir", std::string(kTlsPath), "--job", job,
                        "--namespace", name_space, "--drain-seconds", std::to_string(kDrainSeconds), "--unused-seconds",
                        std::to_string(kUnusedSeconds), "--python-path", std::string(kBundlePythonPath)});
  settle_in(worker, training_job);
  worker.set_variable("SLUICE_JOB", job);
  worker.set_variable("SLUICE_NAMESPACE", name_space);
  worker.set_resources(worker_resources(training_job));
  worker.add_port("grpc", kWorkerPort);
  worker.set_readiness_probe("/readyz", 2, 3);
  worker.set_liveness_probe("/healthz", 10, 6);
  return container;
}

// The trainer's, but for what is about GPUs: a worker on a node with GPUs takes CPU from the trainers there.
json node_selector(const PodSpec& trainer) {
  json selector = json::object();
  for (const auto& [key, value] : trainer.node_selector().items())
    if (!tells_of_accelerators(key)) selector[key] = value;
  return selector;
}

// The trainer's, and those that let go of a lost node, unless the trainer has one for that.
json tolerations(const PodSpec& trainer) {
  json kept = json::array();
  for (const json& toleration : trainer.tolerations())
    if (!tells_of_accelerators(toleration_key(toleration))) kept.push_back(toleration);
  const auto is_covered = [&](std::string_view taint) {
    return std::any_of(kept.begin(), kept.end(), [&](const json& each) {
      const std::string key = toleration_key(each);
      return key.empty() || key == taint;
    });
  };
  for (const std::string_view taint : kTaintsOfLostNodes)
    if (!is_covered(taint))
      kept.push_back(
          {{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", kLostNodeSeconds}});
  return kept;
}

}  // namespace

json worker_pod_template(const TrainingJob& training_job, const Config& config) {
  const std::string job = training_job.name();
  const json trainer_pod = without_nulls(training_job.trainer_pod());
  const PodSpec trainer(trainer_pod);
  const json& trainer_container = trainer.containers()[training_job.training_container_index()];

  PodTemplateDraft draft;
  PodSpecDraft pod = draft.pod();
  pod.set_restart_policy("OnFailure");  // a worker that ends because no feeder uses it is not to begin again
  pod.know_no_cluster();
  pod.set_grace_seconds(kGraceSeconds);
  pod.set_security_context(hardened_pod(trainer.security_context()));
  pod.add_init_container(bundle_container(trainer_pod, trainer_container, config));
  pod.add_container(worker_container(training_job, trainer_container));
  pod.take_over(trainer_pod);
  add_pull_secrets(pod, config);
  pod.set_node_selector(node_selector(trainer));
  pod.pin_to_platform(architecture_of(training_job, config.architectures));
  pod.set_tolerations(tolerations(trainer));
  if (!config.worker_priority_class.empty()) pod.set_priority_class(config.worker_priority_class);
  for (const json& volume : trainer.volumes())
    if (Container(trainer_container).mounts(name_of(volume))) pod.add_volume(worker_volume(volume));
  add_executor_volumes(pod, job);

  MetadataDraft metadata = draft.metadata();
  take_annotations_of_volumes(metadata, Object(training_job.trainer_template()));
  stay_out_of_meshes(metadata, Object(training_job.trainer_template()));
  metadata.set_sluice_labels(job, kWorkerComponent);
  metadata.set_scraped(kMetricsPort);
  metadata.set_annotation(kSafeToEvictAnnotation, "true");
  return without_nulls(with_worker_template(draft.take(), training_job));
}

}  // namespace sluice::act
