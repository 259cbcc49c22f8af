// Whatever quantities the API server has stored, of tenants or of nodes, a round overflows nowhere (the sanitizer would
// end it), no sum turns negative, and what is meant as "no bound" is none.
#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

constexpr const char* kOddQuantities[] = {"9223372036854775807",
                                          "9e18",
                                          "1e99",
                                          "16Ei",
                                          "9223372036854775",
                                          "4611686018427387904",
                                          "0.5Gi",
                                          "1e3",
                                          "1n",
                                          "0",
                                          "-9e18",
                                          "no one",
                                          "1E",
                                          "-1"};

void check_sums(const scheduler::ClusterSnapshot& snapshot) {
  for (const scheduler::Node& node : snapshot.nodes) {
    CHECK(node.requested_by_others_millicores >= 0);
    CHECK(node.free_memory_bytes.value_or(0) >= 0);
  }
  for (const scheduler::Job& job : snapshot.jobs) CHECK(job.gpus >= 0);
}

TEST_CASE("pods with any quantity leave no sum negative") {
  const std::string odd = GENERATE(from_range(std::begin(kOddQuantities), std::end(kOddQuantities)));
  if (odd.starts_with("-")) return;  // the API server refuses those of pods
  CAPTURE(odd);
  ClusterObjects objects = cluster();
  const bool is_placed = GENERATE(true, false);
  json other = pod("other", is_placed ? "n1" : "", odd);
  json& containers = other["spec"]["containers"];
  containers[0]["resources"]["requests"]["memory"] = odd;
  containers[0]["resources"]["limits"]["nvidia.com/gpu"] = odd;
  for (int more = 0; more < 3; ++more) containers.push_back(containers[0]);
  other["spec"]["overhead"] = {{"cpu", odd}, {"memory", odd}};
  other["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                                {"status", "False"},
                                                {"reason", "Unschedulable"},
                                                {"message", "0/1 nodes are available: 1 Insufficient cpu."}}});
  put(objects.pods, other);
  other["metadata"]["name"] = "another";
  put(objects.pods, other);
  check_sums(build(objects));
}

TEST_CASE("a TrainingJob of many trainers with any number of GPUs has a number of GPUs") {
  const std::string odd = GENERATE(from_range(std::begin(kOddQuantities), std::end(kOddQuantities)));
  CAPTURE(odd);
  ClusterObjects objects = cluster();
  json job = training_job();
  job["spec"]["trainer"]["replicas"] = 10'000;
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = odd;
  job["spec"]["feeder"]["resources"] = {{"requests", {{"cpu", odd}}}, {"limits", {{"cpu", odd}}}};
  job["spec"]["dataWorkers"]["resources"] = {{"requests", {{"cpu", odd}, {"memory", odd}}}};
  put(objects.training_jobs, job);
  check_sums(build(objects));
}

TEST_CASE("a quota of more than any cluster has bounds no workers") {
  const std::string resource =
      GENERATE("requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods", "count/pods");
  const std::string most = GENERATE("9223372036854775807", "1e99", "16Ei");
  INFO(resource << " = " << most);
  ClusterObjects objects = cluster();
  put(objects.resource_quotas,
      {{"metadata", {{"name", "unbounded"}, {"namespace", "default"}}}, {"status", {{"hard", {{resource, most}}}}}});
  const auto snapshot = build(objects);
  for (const scheduler::Quota& quota : snapshot.quotas)
    CHECK(quota.worker_millicores.value_or(1'000'000'000) >= 1'000'000'000);
}

}  // namespace
}  // namespace sluice::observe
