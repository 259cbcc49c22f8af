// Steps of the pool default/vision against the in-memory cluster, for tests.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/act/data_worker_pool.h"
#include "operator/api/fields.h"
#include "operator/testing/fake_cluster.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::control::testing {

inline constexpr double kNow = 1'000'000;

inline act::PoolWorld see(const FakeCluster& cluster, double now_seconds = kNow) {
  act::PoolWorld world{
      .pool = cluster.get(kube::kDataWorkerPools, "vision"), .now_seconds = now_seconds, .now = "2026-01-01T02:00:00Z"};
  for (const auto& [key, pod] : cluster.all(kube::kPods)) world.pods.push_back(pod);
  return world;
}

inline std::vector<std::string> writes_to_pods(const act::PoolStep& step) {
  std::vector<std::string> result;
  for (const kube::Action& action : step.actions)
    if (action.resource == kube::kPods) result.push_back(action.to_string());
  return result;
}

// One step, of which the first `writes` actions happen. The memory is as the controller would keep it.
inline act::PoolStep run(FakeCluster& cluster, act::PoolMemory& memory, std::size_t writes = 100,
                         double now_seconds = kNow) {
  act::PoolStep step = act::reconcile_pool(see(cluster, now_seconds), memory);
  memory = step.memory;
  for (std::size_t i = 0; i < std::min(writes, step.actions.size()); ++i)
    REQUIRE(cluster.perform(step.actions[i]).ok());
  for (std::size_t index = writes; index < step.actions.size(); ++index)
    act::forget_failed(memory, step.actions[index]);
  if (writes > step.actions.size() && step.status) REQUIRE(cluster.perform(*step.status).ok());
  return step;
}

inline void make_ready(FakeCluster& cluster) {
  for (const auto& [key, pod] : cluster.all(kube::kPods)) {
    nlohmann::json& status = cluster.at(kube::kPods, key.name)["status"];
    if (api::text_field(*pod, "/status/phase").empty()) status["phase"] = "Running";
    if (api::text_field(*pod, "/status/phase") != "Failed")
      status["conditions"] = nlohmann::json::array({condition("Ready", "True")});
  }
}

inline FakeCluster cluster_with_pool(int replicas) {
  FakeCluster cluster;
  cluster.put(kube::kDataWorkerPools, pool(replicas));
  return cluster;
}

inline FakeCluster running(int workers) {
  FakeCluster cluster = cluster_with_pool(workers);
  act::PoolMemory memory;
  run(cluster, memory);
  make_ready(cluster);
  run(cluster, memory);
  return cluster;
}

inline void scale(FakeCluster& cluster, int replicas) {
  cluster.at(kube::kDataWorkerPools, "vision")["spec"]["replicas"] = replicas;
}

inline std::set<std::string> live_pods(const FakeCluster& cluster) {
  std::set<std::string> names;
  for (const auto& [key, pod] : cluster.all(kube::kPods))
    if (api::field(*pod, "/metadata/deletionTimestamp").is_null()) names.insert(key.name);
  return names;
}

using Writes = std::vector<std::string>;

}  // namespace sluice::control::testing
