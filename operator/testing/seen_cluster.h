// A small cluster as informers show it, for tests of its readers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/observe/snapshot_builder.h"
#include "operator/testing/objects.h"

namespace sluice::observe::testing {

using control::testing::condition;
using control::testing::owner_reference;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;

inline constexpr double kNow = 1'767'225'600;  // 2026-01-01T00:00:00Z

inline void put(kube::Store::Objects& objects, nlohmann::json object) {
  const kube::ObjectKey key = kube::key_of(object);
  objects[key] = shared(std::move(object));
}

inline nlohmann::json node(const std::string& name, const std::string& cpu) {
  return {{"metadata", {{"name", name}}},
          {"status", {{"allocatable", {{"cpu", cpu}}}, {"conditions", {condition("Ready", "True")}}}}};
}

inline nlohmann::json pod(const std::string& name, const std::string& node, const std::string& cpu) {
  nlohmann::json object = {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "uid-" + name}}},
                           {"spec", {{"containers", {{{"resources", {{"requests", {{"cpu", cpu}}}}}}}}}},
                           {"status", {{"phase", "Running"}}}};
  if (!node.empty()) object["spec"]["nodeName"] = node;
  return object;
}

inline nlohmann::json worker(const std::string& name, const std::string& node,
                             const std::string& pool_uid = "uid-pool") {
  nlohmann::json object = pod(name, node, "500m");
  object["metadata"]["labels"] = {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "worker"}};
  object["metadata"]["ownerReferences"] =
      nlohmann::json::array({owner_reference("DataWorkerPool", "vision", pool_uid)});
  object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  object["status"]["conditions"] = nlohmann::json::array({condition("Ready", "True", "2026-01-01T00:00:07Z")});
  return object;
}

inline nlohmann::json trainer_job(int ready) {
  return {{"metadata",
           {{"name", "vision"},
            {"namespace", "default"},
            {"annotations", {{"sluice.dev/feeder", "true"}}},
            {"ownerReferences", {owner_reference("TrainingJob", "vision", "uid-vision")}}}},
          {"status", {{"ready", ready}}}};
}

// A running job with two workers on a node of four cores, beside a pod of no job.
inline ClusterObjects cluster() {
  ClusterObjects objects;
  put(objects.training_jobs, training_job());
  put(objects.jobs, trainer_job(1));
  put(objects.pools, pool(2));
  put(objects.nodes, node("n1", "4"));
  put(objects.pods, worker("vision-worker-0", "n1"));
  put(objects.pods, worker("vision-worker-1", "n1"));
  put(objects.pods, pod("other", "n1", "700m"));
  return objects;
}

inline scheduler::ClusterSnapshot build(const ClusterObjects& objects) {
  return SnapshotBuilder().build(objects, {{}, "no metrics"}, {}, {}, kNow + 60);
}

}  // namespace sluice::observe::testing
