#include "operator/observe/host_ports.h"

#include <nlohmann/json.hpp>

#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"
#include "operator/observe/pod_index.h"

namespace sluice::observe {

std::set<std::int64_t> held_host_ports(const kube::Store::Objects& pods, const kube::Store::Objects& trainer_jobs,
                                       const kube::ObjectKey& training_job) {
  std::set<std::int64_t> held;
  for (const auto& [key, object] : pods) {
    const api::Pod pod(*object);
    if (!pod.ended() && job_of_trainer(*object) != training_job) held.merge(pod.host_ports());
  }
  // A trainer's Job has the name of its TrainingJob.
  for (const auto& [key, object] : trainer_jobs)
    if (const api::TrainerJob job(*object); key != training_job && !job.over()) held.merge(job.host_ports());
  return held;
}

}  // namespace sluice::observe
