// Sluice's control plane under faults. A failure prints the plan; `sluice-simulation --seed N` shows its trace, and
// the plan in a file under scenarios/ makes it a test for good.
#include "operator/fault_simulation/simulation.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/pod.h"
#include "operator/fault_simulation/campaign.h"
#include "operator/fault_simulation/cluster_run.h"
#include "operator/fault_simulation/workload.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

void expect_no_failure(const CampaignResult& result) {
  for (const Failure& failure : result.failures)
    for (const std::string& violation : failure.violations)
      FAIL_CHECK(failure.plan.to_json().dump() << ": " << violation);
}

TEST_CASE("every workload ends as it should when nothing goes wrong, in whatever order things happen") {
  const auto& names = workload_names();
  expect_no_failure(run_campaign(names.size() * 4, [&](std::uint64_t index) {
    FaultPlan plan = undisturbed(names[index % names.size()]);
    plan.seed = 1 + index;
    return plan;
  }));
}

TEST_CASE("clocks that are ten minutes wrong hold nothing up, and make nothing happen more often") {
  struct Clocks {
    int operator_skew_seconds;
    int node_skew_seconds;
  };
  constexpr Clocks kClocks[] = {{600, 0}, {-600, 0}, {0, 600}, {0, -600}, {600, -600}};
  const auto& names = workload_names();
  expect_no_failure(run_campaign(names.size() * std::size(kClocks), [&](std::uint64_t index) {
    FaultPlan plan = undisturbed(names[index % names.size()]);
    const Clocks& clocks = kClocks[index / names.size()];
    plan.operator_skew_seconds = clocks.operator_skew_seconds;
    plan.node_skew_seconds = clocks.node_skew_seconds;
    plan.rates.kill_pod_per_second = 0.01;
    return plan;
  }));
}

TEST_CASE("no worker waits for a node that takes it, however much room there is on others") {
  ClusterRun run(undisturbed("fenced"), *workload("fenced").value(), {});
  REQUIRE(run.run().violations.empty());
  std::map<std::string, int> workers;
  int sum = 0;
  for (const auto& [key, object] : run.server().all(kube::kPods)) {
    const api::Pod pod(*object);
    if (!pod.is_worker() || !pod.serves()) continue;
    CHECK_FALSE(pod.node().empty());
    ++workers[pod.job() + " on " + pod.node()];
    ++sum;
  }
  CHECK(workers["plain on n2"] + workers["zoned on n2"] == 0);
  CHECK(workers["zoned on n0"] == 0);
  CHECK(sum == 3 + workers["zoned on n1"]);
  CHECK(workers["zoned on n1"] >= 4);
}

TEST_CASE("workers end with the memory that they use and a margin, and with the CPU that a node has free") {
  ClusterRun run(undisturbed("sized"), *workload("sized").value(), {});
  REQUIRE(run.run().violations.empty());
  std::map<std::string, std::set<std::string>> requests;  // by job
  for (const auto& [key, object] : run.server().all(kube::kPods))
    if (const api::Pod pod(*object); pod.is_worker() && pod.serves())
      requests[pod.job()].insert(std::to_string(pod.request_millicores()) + "m " +
                                 std::to_string(pod.worker_memory_bytes() >> 20) + "Mi");
  CHECK(requests["heavy"] == std::set<std::string>{"100m 704Mi"});
  CHECK(requests["narrow"] == std::set<std::string>{"500m 256Mi"});
  CHECK(requests["stated"] == std::set<std::string>{"100m 0Mi"});
  CHECK_FALSE(api::DataWorkerPool(*run.server().get(kube::kDataWorkerPools, {"default", "stated"})).worker_size());
}

TEST_CASE("a job whose data one node holds trains without workers, until its user says that workers do not need it") {
  ClusterRun run(undisturbed("odd"), *workload("odd").value(), {});
  REQUIRE(run.run().violations.empty());
  std::map<std::string, int> workers;
  for (const auto& [key, object] : run.server().all(kube::kPods))
    if (const api::Pod pod(*object); pod.is_worker() && pod.serves()) ++workers[pod.job()];
  CHECK(workers["apart"] == 0);
  CHECK(workers["freed"] == 1);
  const auto blocked = [&](const char* job) {
    const auto object = run.server().get(kube::kTrainingJobs, {"default", job});
    return api::find_condition(api::Object(*object).conditions(), "WorkersBlocked").reason;
  };
  CHECK(blocked("apart") == api::kDataOnlyInTrainer);
  CHECK(blocked("freed") == "NotBlocked");
}

TEST_CASE("what ran on drained nodes runs elsewhere as far as there is room, and nothing waits for theirs") {
  ClusterRun run(undisturbed("drained"), *workload("drained").value(), {});
  REQUIRE(run.run().violations.empty());
  std::map<std::string, int> workers;  // by node
  for (const auto& [key, object] : run.server().all(kube::kPods))
    if (const api::Pod pod(*object); pod.is_worker() && pod.serves()) ++workers[pod.node()];
  CHECK(workers["n1"] == 0);
  CHECK(workers["n0"] + workers["n2"] == 5);  // four on one node, and one beside the trainer
  CHECK(workers.size() == 3);
}

TEST_CASE("nodes are drained for a while, or taken back and replaced, and every workload ends as if none had been") {
  const auto& names = workload_names();
  expect_no_failure(run_campaign(names.size() * 2, [&](std::uint64_t index) {
    FaultPlan plan = undisturbed(names[index % names.size()]);
    plan.seed = 1 + index;
    plan.rates.drain_node_per_second = 0.05;
    return plan;
  }));
}

TEST_CASE("the operator is upgraded and rolled back while jobs run, and what the other release wrote is put right") {
  const auto& names = workload_names();
  std::atomic<int> writes_of_other = 0;
  RunOptions options;
  options.on_request = [&](const http::Request& request, int) {
    if (request.body.find("sluice:other") != std::string::npos) ++writes_of_other;
  };
  expect_no_failure(run_campaign(
      names.size() * 2,
      [&](std::uint64_t index) {
        FaultPlan plan = undisturbed(names[index % names.size()]);
        plan.seed = 1 + index;
        plan.operators = 1 + static_cast<int>(index / names.size());
        plan.rates.upgrade_per_second = 0.05;
        return plan;
      },
      nullptr, options));
  CHECK(writes_of_other > 100);
}

TEST_CASE("a process that is told to end gives its lease up, and the other one leads at once") {
  FaultPlan plan = undisturbed("starved");
  plan.rates.upgrade_per_second = 0.1;
  RunOptions options;
  options.trace = true;
  const Outcome outcome = simulate(plan, options);
  const auto has = [&](const char* text) {
    return std::any_of(outcome.trace.begin(), outcome.trace.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  CHECK(outcome.violations.empty());
  for (const char* text : {"is upgraded", "is rolled back", "operator-0: is told to end", "operator-1: election: leads",
                           "operator-1: is told to end"})
    CHECK(has(text));
}

TEST_CASE("the same plan gives the same run") {
  RunOptions options;
  options.trace = true;
  FaultPlan plan = random_plan(7);
  plan.rates.crash_per_second = plan.rates.kill_pod_per_second = plan.rates.lose_answer = 0.02;
  const Outcome first = simulate(plan, options);
  const Outcome second = simulate(plan, options);
  CHECK(first.trace.size() > 100);
  CHECK(first.trace == second.trace);
}

TEST_CASE("thousands of seeds: whatever went wrong, the cluster ends as if nothing had") {
  expect_no_failure(run_campaign(SLUICE_SIMULATION_SEEDS, [](std::uint64_t index) { return random_plan(index + 1); }));
}

TEST_CASE("Sieve's patterns: every crash, every unobserved pair, every stale view") {
  std::vector<FaultPlan> plans;
  for (const std::string& name : workload_names())
    for (FaultPlan& plan : sieve_plans(name)) plans.push_back(std::move(plan));
  CHECK(plans.size() > 800);
  const std::uint64_t stride = SLUICE_SIMULATION_STRIDE;
  const auto result = run_campaign(plans.size() / stride, [&](std::uint64_t index) { return plans[index * stride]; });
  WARN(result.runs << " of " << plans.size() << " perturbations explored");
  expect_no_failure(result);
}

TEST_CASE("what was found once") {
  std::vector<FaultPlan> plans;
  for (const auto& entry : std::filesystem::directory_iterator("operator/fault_simulation/scenarios")) {
    std::ifstream file(entry.path());
    const auto plan = FaultPlan::from_json(nlohmann::json::parse(file, nullptr, false));
    INFO(entry.path());
    REQUIRE(plan.ok());
    plans.push_back(*plan);
  }
  expect_no_failure(run_campaign(plans.size(), [&](std::uint64_t index) { return plans[index]; }));
}

}  // namespace
}  // namespace sluice::simulation
