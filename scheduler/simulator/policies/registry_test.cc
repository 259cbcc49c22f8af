#include "scheduler/simulator/policies/registry.h"

#include <algorithm>
#include <string>

#include "scheduler/simulator/policies/testing/world.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

World mixed() {
  World world;
  world.node("gpu-0", 8, 24).node("gpu-1", 8, 24).node("cpu-0", 0, 32).node("cpu-1", 0, 16);
  world.job("a", "gpu-0", 4, kneed(4, 20)).job("b", "gpu-0", 4, kneed(4, 0.5)).job("c", "gpu-1", 2, kneed(2, 36));
  return world;
}

TEST_CASE("every policy can be made by its name") {
  for (const std::string_view name : policy_names()) {
    const auto policy = make_policy(name, {});
    REQUIRE(policy.ok());
    CHECK((*policy)->name() == name);
  }
  CHECK(policy_names().front() == "static");
  CHECK(policy_names().back() == "sluice");
}

TEST_CASE("a policy that does not exist: the error names those that do") {
  const auto policy = make_policy("magic", {});
  REQUIRE_FALSE(policy.ok());
  CHECK(policy.error().code() == ErrorCode::kInvalidArgument);
  for (const std::string_view name : policy_names()) {
    INFO(name);
    CHECK(policy.error().message().find(name) != std::string::npos);
  }
}

// World checks every plan: no node over-committed, exactly the surplus as victims, jobs in order.
TEST_CASE("every policy, for an hour: its plans can be carried out, and no job is slower than with a tenth of a core") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    World world = mixed();
    auto policy = make_policy(name, {});
    world.run(**policy, 240);
    for (const char* job : {"a", "b", "c"}) CHECK(world.speed(job) > 0.05);
  }
}

TEST_CASE("every policy: jobs come, go and lose their metrics, nodes are drained") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    World world = mixed();
    auto policy = make_policy(name, {});
    world.run(**policy, 40);
    world.at("a").running = false;
    world.run(**policy, 10);
    world.snapshot().nodes[2].schedulable = false;
    world.run(**policy, 10);
    world.at("a").running = true;
    world.snapshot().nodes[2].schedulable = true;
    world.run(**policy, 10);
    for (Job& job : world.snapshot().jobs) job.observation = {std::nullopt, "Prometheus is away"};
    const Plan plan = (*policy)->decide(world.snapshot());
    CHECK(plan.jobs.size() == 3);
  }
}

TEST_CASE("every policy: twice the same snapshots, twice the same plans, whatever the order of jobs and nodes") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    World forward = mixed();
    World backward = mixed();
    std::reverse(backward.snapshot().jobs.begin(), backward.snapshot().jobs.end());
    std::reverse(backward.snapshot().nodes.begin(), backward.snapshot().nodes.end());
    auto one = make_policy(name, {});
    auto other = make_policy(name, {});
    for (int i = 0; i < 30; ++i) {
      forward.run(**one, 1);
      backward.run(**other, 1);
      for (std::size_t j = 0; j < 3; ++j) {
        CHECK(forward.plan().jobs[j].workers == backward.plan().jobs[j].workers);
        CHECK(forward.plan().jobs[j].local == backward.plan().jobs[j].local);
      }
    }
  }
}

// The workers of a job after each of so many decisions.
std::vector<int> course(World& world, std::string_view policy_name, const std::string& job, int decisions) {
  auto policy = make_policy(policy_name, {});
  std::vector<int> workers;
  for (int i = 0; i < decisions; ++i) {
    world.run(**policy, 1);
    workers.push_back(world.workers(job));
  }
  return workers;
}

TEST_CASE("every policy: where there is room for both, another job on another host makes no difference") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    const auto world = [] {
      World world;
      world.node("gpu-0", 8, 24).node("gpu-1", 8, 24).node("cpu", 0, 900);
      return world.job("a", "gpu-0", 4, kneed(4, 12));
    };
    World alone = world(), with_another = world();
    with_another.job("b", "gpu-1", 4, kneed(4, 20));
    CHECK(course(with_another, name, "a", 60) == course(alone, name, "a", 60));
  }
}

TEST_CASE("every policy: it reads no clock, only differences count") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    World now = mixed(), later = mixed();
    later.snapshot().taken_at_seconds = 1'000'000;
    CHECK(course(now, name, "a", 60) == course(later, name, "a", 60));
  }
}

TEST_CASE("every policy: a job that was suspended is a new one, whatever had been found out about it") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    World world = mixed();
    auto policy = make_policy(name, {});
    world.run(**policy, 60);
    for (Job& job : world.snapshot().jobs) job.running = false;
    world.run(**policy, 1);
    for (Job& job : world.snapshot().jobs) {
      CHECK(job.workers.empty());
      job.running = true;
    }
    World afresh = world;
    auto other = make_policy(name, {});
    for (int i = 0; i < 20; ++i) {
      world.run(**policy, 1);
      afresh.run(**other, 1);
      for (const char* job : {"a", "b", "c"}) CHECK(world.workers(job) == afresh.workers(job));
    }
  }
}

TEST_CASE("no job at all, no node at all") {
  for (const std::string_view name : policy_names()) {
    INFO(name);
    auto policy = make_policy(name, {});
    CHECK((*policy)->decide({}).jobs.empty());
    ClusterSnapshot nodeless = mixed().snapshot();
    nodeless.nodes.clear();
    for (const JobPlan& job : (*policy)->decide(nodeless).jobs) CHECK(job.workers == 0);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
