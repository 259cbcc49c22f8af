#include "operator/act/rendezvous.h"

#include "operator/api/labels.h"
#include "operator/api/names.h"

namespace sluice::act {

using namespace api;

ServiceDraft trainers_service(const TrainingJob& training_job) {
  const std::string job = training_job.name();
  ServiceDraft service(training_job.name_space(), trainers_service_name(job));
  service.select_pods_of(job, kTrainerComponent);
  service.name_unready_pods();  // pods are ready only when they have met
  service.add_port("rendezvous", kRendezvousPort, kRendezvousPort);
  return service;
}

void add_rendezvous(PodSpecDraft& pod, const TrainingJob& training_job) {
  const std::string job = training_job.name();
  const std::string service = trainers_service_name(job);
  pod.join_service(service);

  ContainerDraft trainer = pod.container(training_job.training_container_index());
  trainer.add_variable("MASTER_ADDR", job + "-0." + service + "." + training_job.name_space() + ".svc");
  trainer.add_variable("MASTER_PORT", std::to_string(kRendezvousPort));
  const std::string replicas = std::to_string(training_job.trainer_replicas());
  if (const auto least = training_job.elastic_min_replicas()) {
    trainer.add_variable("PET_NNODES", std::to_string(*least) + ":" + replicas);
    trainer.add_variable("PET_RDZV_BACKEND", "c10d");
    trainer.add_variable("PET_RDZV_ENDPOINT", "$(MASTER_ADDR):$(MASTER_PORT)");
    trainer.add_variable("PET_RDZV_ID", job);
    trainer.add_variable("PET_MAX_RESTARTS", std::to_string(training_job.backoff_limit()));
    // Else the agent's store outlives a round, and new ranks read the addresses of those that are gone.
    trainer.add_variable("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
    return;
  }
  // For a script that is started as it is, one process in each pod. torchrun sets these two for its own processes.
  trainer.add_variable("WORLD_SIZE", replicas);
  trainer.add_index_variable("RANK");
  trainer.add_index_variable("NODE_RANK");
  trainer.add_variable("PET_NNODES", replicas);
  trainer.add_index_variable("PET_NODE_RANK");
  trainer.add_variable("PET_MASTER_ADDR", "$(MASTER_ADDR)");
  trainer.add_variable("PET_MASTER_PORT", "$(MASTER_PORT)");
}

}  // namespace sluice::act
