// A cluster at a glance: a few jobs, and the plan that a person would expect.
#include <algorithm>

#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// A host of 8 GPUs with three cores each.
Node host(const std::string& name) { return {.name = name, .allocatable_millicores = 24'000, .gpus = 8}; }

Node cpu(const std::string& name, int cores) { return {.name = name, .allocatable_millicores = 1000 * cores}; }

// A trainer on a host, with its share of three cores per GPU. It needs `knee` cores in all; a remote core is worth
// 0.77. It is worth feeding up to 1.36 times the knee.
Job trainer(const std::string& name, const std::string& on, int gpus, double knee) {
  Job job = MakeJob(name).gpus(gpus).obj();
  job.ranks = gpus;
  job.local_adjustable = true;
  job.hosts = {{on, gpus, gpus, 3000 * gpus, 24'000}};
  const FluidJob physics{.demand = 1000 * knee, .local_rate = 1000, .remote_rate = 770, .local_cores = 3.0 * gpus};
  job.observation = {physics.steady(0, kNowSeconds - 5), ""};
  return job;
}

template <typename Change>
Job but(Job job, Change change) {
  change(job);
  return job;
}

Job blind(Job job) {
  job.memory = estimate_of(job, kNowSeconds, {}).memory;
  job.observation = {std::nullopt, "Prometheus is away"};
  return job;
}

Job with_workers(Job job, int workers, const std::string& on) {
  for (int i = 0; i < workers; ++i)
    job.workers.push_back(
        {job.id.name + "-worker-" + std::to_string(i), on, true, kNowSeconds - 900, kNowSeconds - 800, false});
  job.allocated_workers += workers;
  return job;
}

struct Expected {
  const char* job;
  double local_cores;
  int workers;
  Reason reason;
};

TEST_CASE("the plan that a person would expect") {
  const auto priority = [](int value) { return [value](Job& job) { job.priority = value; }; };
  const auto quota = [](const char* name) { return [name](Job& job) { job.quota = name; }; };
  struct Row {
    const char* situation;
    ClusterSnapshot at;
    std::vector<Expected> want;
  };
  const Row rows[] = {
      {"one vision job, and nothing but its host",
       {kNowSeconds, {host("h")}, {trainer("vision", "h", 8, 40)}, {}, {}},
       {{"vision", 24, 0, Reason::kCpu}}},
      {"one vision job, and CPU nodes in plenty",
       {kNowSeconds, {host("h"), cpu("n", 64)}, {trainer("vision", "h", 8, 30)}, {}, {}},
       {{"vision", 24, 22, Reason::kNeedMet}}},
      {"language models only: a core per GPU, and not a worker",
       {kNowSeconds,
        {host("g"), host("h"), cpu("n", 64)},
        {trainer("a", "g", 8, 2), trainer("b", "h", 4, 1), trainer("c", "h", 4, 1)},
        {},
        {}},
       {{"a", 8, 0, Reason::kNeedMet}, {"b", 4, 0, Reason::kNeedMet}, {"c", 4, 0, Reason::kNeedMet}}},
      {"a vision job between two language models takes up what they leave",
       {kNowSeconds,
        {host("h")},
        {trainer("a", "h", 2, 1), trainer("b", "h", 2, 1), trainer("vision", "h", 4, 40)},
        {},
        {}},
       {{"a", 2, 0, Reason::kNeedMet}, {"b", 2, 0, Reason::kNeedMet}, {"vision", 20, 0, Reason::kCpu}}},
      {"two equal vision jobs share a host and a CPU node",
       {kNowSeconds, {host("h"), cpu("n", 16)}, {trainer("a", "h", 4, 30), trainer("b", "h", 4, 30)}, {}, {}},
       {{"a", 12, 8, Reason::kCpu}, {"b", 12, 8, Reason::kCpu}}},
      {"one of them is more important: all workers are its, and the other keeps its part of the host",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {trainer("a", "h", 4, 30), but(trainer("b", "h", 4, 30), priority(1))},
        {},
        {}},
       {{"a", 12, 0, Reason::kCpu}, {"b", 12, 16, Reason::kCpu}}},
      {"one of them is about to end: no worker is started for it",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {but(trainer("a", "h", 4, 30), [](Job& job) { remains(30, job); }), trainer("b", "h", 4, 30)},
        {},
        {}},
       {{"a", 12, 0, Reason::kNeedMet}, {"b", 12, 16, Reason::kCpu}}},
      {"one of them must stay on its host",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {but(trainer("a", "h", 4, 30), [](Job& job) { job.placement = Placement::kLocal; }), trainer("b", "h", 4, 30)},
        {},
        {}},
       {{"a", 12, 0, Reason::kPlacementLocal}, {"b", 12, 16, Reason::kCpu}}},
      {"one of them is not measured any more: it keeps what it has, the other gets the rest",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {with_workers(blind(trainer("a", "h", 4, 30)), 5, "n"), trainer("b", "h", 4, 30)},
        {},
        {}},
       {{"a", 12, 5, Reason::kNoMetrics}, {"b", 12, 11, Reason::kCpu}}},
      {"one of them is left alone by order",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {but(with_workers(trainer("a", "h", 4, 2), 5, "n"), [](Job& job) { job.mode = Mode::kOff; }),
         trainer("b", "h", 4, 30)},
        {},
        {}},
       {{"a", 12, 5, Reason::kModeOff}, {"b", 12, 11, Reason::kCpu}}},
      {"one of them is in a team whose quota is small",
       {kNowSeconds,
        {host("h"), cpu("n", 16)},
        {but(trainer("a", "h", 4, 30), quota("small")), but(trainer("b", "h", 4, 30), quota("large"))},
        {{"small", 3000}, {"large", 300'000}},
        {}},
       {{"a", 12, 3, Reason::kQuota}, {"b", 12, 13, Reason::kCpu}}},
      {"a language model that holds workers it does not need gives them to the one that does",
       {kNowSeconds,
        {host("h"), cpu("n", 6)},
        {with_workers(trainer("language", "h", 4, 1), 6, "n"), trainer("vision", "h", 4, 60)},
        {},
        {}},
       {{"language", 4, 0, Reason::kNeedMet}, {"vision", 20, 6, Reason::kCpu}}},
      {"one has finished: its workers go to the other in the same decision",
       {kNowSeconds,
        {host("h"), cpu("n", 6)},
        {with_workers(MakeJob("done").not_running().local_millicores(0).obj(), 6, "n"), trainer("vision", "h", 4, 60)},
        {},
        {}},
       {{"done", 0, 0, Reason::kNotRunning}, {"vision", 24, 6, Reason::kCpu}}},
      {"a gang over two hosts beside a language model on one of them",
       {kNowSeconds,
        {host("g"), host("h")},
        {but(trainer("gang", "g", 12, 60),
             [](Job& job) {
               job.hosts = {{"g", 8, 8, 24'000, 24'000}, {"h", 4, 4, 12'000, 24'000}};
             }),
         trainer("language", "h", 4, 1)},
        {},
        {}},
       {{"gang", 44, 0, Reason::kCpu}, {"language", 4, 0, Reason::kNeedMet}}},
      {"five jobs of all kinds, twelve cores, and six to spare on a host: to the one whom a core moves furthest",
       {kNowSeconds,
        {host("g"), host("h"), cpu("n", 12)},
        {trainer("image", "g", 4, 24), trainer("video", "g", 4, 200), trainer("speech", "h", 2, 9),
         trainer("language", "h", 4, 1), trainer("tabular", "h", 2, 0.5)},
        {},
        {}},
       {{"image", 12, 18, Reason::kCpu},
        {"video", 12, 0, Reason::kCpu},
        {"speech", 12, 0, Reason::kNeedMet},
        {"language", 4, 0, Reason::kNeedMet},
        {"tabular", 2, 0, Reason::kNeedMet}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = decide(row.at, {});
    CHECK(broken_rules(row.at, plan) == std::vector<std::string>{});
    for (const Expected& want : row.want) {
      CAPTURE(want.job);
      const JobPlan& its = plan_of(plan, want.job);
      std::int64_t local = 0;
      for (const LocalCpu& on : its.local) local += on.request_millicores;
      CHECK(static_cast<double>(local) / 1000 == Approx(want.local_cores).margin(0.3));
      CHECK(std::abs(its.workers - want.workers) <= 1);
      CHECK(to_string(its.reason) == to_string(want.reason));
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
