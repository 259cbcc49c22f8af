#include "operator/act/rendezvous.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/api/names.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

void add_entry(json& env, std::string_view name, const char* member_name, json value) {
  const bool is_set =
      std::any_of(env.begin(), env.end(), [&](const json& entry) { return member(entry, "name") == name; });
  if (!is_set) env.push_back({{"name", name}, {member_name, std::move(value)}});
}

void add_value(json& env, std::string_view name, std::string value) { add_entry(env, name, "value", std::move(value)); }

// The Job controller numbers the pods.
void add_index(json& env, std::string_view name) {
  const std::string path = "metadata.annotations['" + std::string(kCompletionIndexAnnotation) + "']";
  add_entry(env, name, "valueFrom", {{"fieldRef", {{"fieldPath", path}}}});
}

}  // namespace

json trainers_service_spec(const TrainingJob& training_job) {
  return {
      {"clusterIP", "None"},
      {"publishNotReadyAddresses", true},  // pods are ready only when they have met
      {"selector", {{std::string(kJobLabel), training_job.name()}, {std::string(kComponentLabel), kTrainerComponent}}},
      {"ports", json::array({{{"name", "rendezvous"},
                              {"port", kRendezvousPort},
                              {"targetPort", kRendezvousPort},
                              {"protocol", "TCP"}}})}};
}

void add_rendezvous(json& pod_spec, json& container, const TrainingJob& training_job) {
  const std::string job = training_job.name();
  const std::string service = trainers_service_name(job);
  pod_spec["subdomain"] = service;
  pod_spec.erase("hostname");  // the Job controller gives each pod its own: the job's name and its number

  json& env = container["env"];
  if (!env.is_array()) env = json::array();
  add_value(env, "MASTER_ADDR", job + "-0." + service + "." + training_job.name_space() + ".svc");
  add_value(env, "MASTER_PORT", std::to_string(kRendezvousPort));
  const std::string replicas = std::to_string(training_job.trainer_replicas());
  if (const auto least = training_job.elastic_min_replicas()) {
    add_value(env, "PET_NNODES", std::to_string(*least) + ":" + replicas);
    add_value(env, "PET_RDZV_BACKEND", "c10d");
    add_value(env, "PET_RDZV_ENDPOINT", "$(MASTER_ADDR):$(MASTER_PORT)");
    add_value(env, "PET_RDZV_ID", job);
    add_value(env, "PET_MAX_RESTARTS", std::to_string(training_job.backoff_limit()));
    // Else the agent's store outlives a round, and new ranks read the addresses of those that are gone.
    add_value(env, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
    return;
  }
  // For a script that is started as it is, one process in each pod. torchrun sets these two for its own processes.
  add_value(env, "WORLD_SIZE", replicas);
  add_index(env, "RANK");
  add_index(env, "NODE_RANK");
  add_value(env, "PET_NNODES", replicas);
  add_index(env, "PET_NODE_RANK");
  add_value(env, "PET_MASTER_ADDR", "$(MASTER_ADDR)");
  add_value(env, "PET_MASTER_PORT", "$(MASTER_PORT)");
}

}  // namespace sluice::act
