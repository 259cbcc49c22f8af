#include "operator/act/worker_network_policy.h"

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"

namespace sluice::act {

using namespace api;

NetworkPolicyDraft worker_network_policy(const TrainingJob& training_job, const nlohmann::json& trainer_job) {
  const std::string job = training_job.name();
  const bool has_pod_address = !PodSpec(training_job.trainer_pod()).on_host_network() &&
                               !PodSpec(TrainerJob(trainer_job).pod()).on_host_network();
  NetworkPolicyDraft policy(training_job.name_space(), network_policy_name(job));
  policy.protect_pods_of(job, kWorkerComponent);
  if (has_pod_address)
    policy.let_in_pods_of(job, kTrainerComponent, {kWorkerPort});
  else
    policy.let_in_all({kWorkerPort});
  policy.let_in_all({kMetricsPort, kProbesPort});
  return policy;
}

}  // namespace sluice::act
