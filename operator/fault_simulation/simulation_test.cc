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
#include "operator/fault_simulation/campaign_themes.h"
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

TEST_CASE("whatever a campaign's theme is, every workload ends as it should") {
  const CampaignTheme& theme = GENERATE(from_range(campaign_themes()));
  INFO(theme.name << ": " << theme.claim);
  const std::vector<FaultPlan> all = theme.plans();
  CHECK(all.size() >= 2 * workload_names().size());
  const std::vector<FaultPlan> plans = sample_of(all, SLUICE_SIMULATION_RUNS);
  std::atomic<int> writes_of_other_release = 0;
  RunOptions options;
  options.on_request = [&](const http::Request& request, int) {
    if (request.body.find("sluice:other") != std::string::npos) ++writes_of_other_release;
  };
  const auto result = run_campaign(
      plans.size(), [&](std::uint64_t index) { return plans[index]; }, nullptr, options);
  expect_no_failure(result);
  CHECK(result.runs == plans.size());
  // Else nothing would have been upgraded.
  CHECK((writes_of_other_release >= static_cast<int>(plans.size())) == (theme.name == std::string("upgrades")));
}

TEST_CASE("a sample of a campaign has all of it before anything twice") {
  std::vector<FaultPlan> plans;
  for (int workload = 0; workload < 6; ++workload)
    for (int variant = 0; variant < 3; ++variant) {
      plans.push_back(undisturbed("workload " + std::to_string(workload)));
      plans.back().operators = variant;
    }
  std::map<std::string, int> workloads;
  std::map<int, int> variants;
  for (const FaultPlan& plan : sample_of(plans, 6)) {
    ++workloads[plan.workload];
    ++variants[plan.operators];
  }
  CHECK(workloads.size() == 6);
  CHECK(variants == std::map<int, int>{{0, 2}, {1, 2}, {2, 2}});
  CHECK(sample_of(plans, 18).size() == 18);
  CHECK(sample_of(plans, 1000).size() == 18);
  CHECK(sample_of({}, 5).empty());
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

TEST_CASE("whatever went wrong, the cluster ends as if nothing had") {
  expect_no_failure(run_campaign(SLUICE_SIMULATION_RUNS, [](std::uint64_t index) { return random_plan(index + 1); }));
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
