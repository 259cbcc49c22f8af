#include "operator/act/worker_network_policy.h"

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

bool on_host_network(const json& pod_template) { return member(member(pod_template, "spec"), "hostNetwork") == true; }

json pods_of(const std::string& job, std::string_view component) {
  return {{"matchLabels", {{std::string(kJobLabel), job}, {std::string(kComponentLabel), component}}}};
}

json tcp_port(int port) { return {{"port", port}, {"protocol", "TCP"}}; }

}  // namespace

json worker_network_policy_spec(const TrainingJob& training_job, const json& trainer_job) {
  const std::string job = training_job.name();
  const bool has_pod_address = !on_host_network(training_job.trainer_template()) &&
                               !on_host_network(member(member(trainer_job, "spec"), "template"));
  // An empty list is "from all", and is told from a list that was there before.
  json trainers = json::array();
  if (has_pod_address) trainers.push_back({{"podSelector", pods_of(job, kTrainerComponent)}});
  json data = {{"from", std::move(trainers)}, {"ports", json::array({tcp_port(kWorkerPort)})}};
  json seen_by_all = {{"from", json::array()}, {"ports", json::array({tcp_port(kMetricsPort), tcp_port(kProbesPort)})}};
  return {{"podSelector", pods_of(job, kWorkerComponent)},
          {"policyTypes", json::array({"Ingress"})},
          {"ingress", json::array({std::move(data), std::move(seen_by_all)})}};
}

}  // namespace sluice::act
