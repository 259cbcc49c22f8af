// Mode Recommend: what a job is told that it could have. It comes from what the others leave, of every limit, with its
// own workers back in the pot.
#include "scheduler/decide/decide.h"
#include "scheduler/estimate/estimator.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Wants 11 workers of one core.

Node node(const std::string& name, int cores, bool schedulable = true) {
  return {.name = name, .allocatable_millicores = 1000 * cores, .schedulable = schedulable};
}

Node with_gibibytes(Node node, int gibibytes) {
  node.free_memory_bytes = std::int64_t{gibibytes} << 30;
  return node;
}

Node with_network(Node node, double bytes_per_second) {
  node.network_bytes_per_second = bytes_per_second;
  return node;
}

Node at_price(Node node, double per_core) {
  node.price_per_hour = per_core * static_cast<double>(node.allocatable_millicores) / 1000;
  return node;
}

// Of team "t", with workers of a gibibyte that send 115.5 MB/s each to host "h".
Job of_team(const std::string& name, int holds, const std::string& on) {
  Job job = MakeJob(name).holds(holds, on).measures(kHungry).obj();
  job.quota = "t";
  job.worker_memory_bytes = std::int64_t{1} << 30;
  job.bytes_per_sample = 150'000;
  job.hosts[0].node = "h";
  return job;
}

Job advised(int holds, const std::string& on = "n") {
  Job job = of_team("advised", holds, on);
  job.mode = Mode::kRecommend;
  return job;
}

// One that keeps exactly what it has.
Job settled(int holds, const std::string& on = "n") {
  Job job = of_team("other", holds, on);
  job.mode = Mode::kOff;
  return job;
}

// One that wants more, and must not have it.
Job two_at_most() {
  Job job = of_team("other", 0, "n");
  job.max_workers = 2;
  return job;
}

// Advised as well, if there were anything to advise it by.
Job unmeasured(Job job) {
  job.mode = Mode::kRecommend;
  job.observation = {std::nullopt, "Prometheus is away"};
  return job;
}

Job lost_one(Job job) {
  ++job.allocated_workers;
  return job;
}

TEST_CASE("what a job is advised, by situation") {
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;  // the first one is advised
    std::optional<std::int64_t> quota_millicores;
    std::optional<double> budget;
    int want;
    Reason want_reason;
  };
  const Node plenty = node("n", 64);
  const Row rows[] = {
      {"nothing binds", {plenty}, {advised(2)}, {}, {}, 11, Reason::kNeedMet},
      {"room for four, it holds two of them", {node("n", 4)}, {advised(2)}, {}, {}, 4, Reason::kCpu},
      {"room for four beside another's two", {node("n", 6)}, {advised(2), settled(2)}, {}, {}, 4, Reason::kCpu},
      {"memory for four, it holds two of them", {with_gibibytes(plenty, 4)}, {advised(2)}, {}, {}, 4, Reason::kCpu},
      {"memory for six, another holds two",
       {with_gibibytes(plenty, 6)},
       {advised(2), settled(2)},
       {},
       {},
       4,
       Reason::kCpu},
      {"the network out of the node carries four",
       {with_network(plenty, 4.7e8), node("h", 0)},
       {advised(2)},
       {},
       {},
       4,
       Reason::kNetwork},
      {"the network into its host carries four",
       {plenty, with_network(node("h", 0), 4.7e8)},
       {advised(2)},
       {},
       {},
       4,
       Reason::kNetwork},
      {"the network into its host carries six, another receives two",
       {plenty, with_network(node("h", 0), 7e8)},
       {advised(2), settled(2)},
       {},
       {},
       4,
       Reason::kNetwork},
      {"a quota of four", {plenty}, {advised(2)}, 4000, {}, 4, Reason::kQuota},
      {"a quota of six, another holds two", {plenty}, {advised(2), settled(2)}, 6000, {}, 4, Reason::kQuota},
      {"a quota of six, another one may grow to two",
       {plenty},
       {advised(2), two_at_most()},
       6000,
       {},
       4,
       Reason::kQuota},
      {"a quota of six, another has lost one of two: its number stands",
       {plenty},
       {advised(2), lost_one(settled(1))},
       6000,
       {},
       4,
       Reason::kQuota},
      {"a quota of six, another one that is advised has not been measured and holds two",
       {plenty},
       {advised(2), unmeasured(settled(2))},
       6000,
       {},
       4,
       Reason::kQuota},
      {"room for four, another's two stand on a node that takes no more",
       {node("n", 4), node("drained", 2, false)},
       {advised(2), settled(2, "drained")},
       {},
       {},
       4,
       Reason::kCpu},
      {"money for four", {at_price(plenty, 0.1)}, {advised(2)}, {}, 0.4, 4, Reason::kBudget},
      {"money for six, another costs two",
       {at_price(plenty, 0.1)},
       {advised(2), settled(2)},
       {},
       0.6,
       4,
       Reason::kBudget},
      {"money for six, another is on a node that costs twice as much",
       {at_price(plenty, 0.1), at_price(node("dear", 2), 0.2)},
       {advised(2), settled(2, "dear")},
       {},
       0.8,
       4,
       Reason::kBudget},
      {"one of its workers is lost, and there is no room for it: the others count",
       {node("n", 2)},
       {lost_one(advised(2))},
       {},
       {},
       2,
       Reason::kCpu},
      {"all of it stands on a node that takes no more, and there is no other",
       {node("n", 8, false)},
       {advised(2)},
       {},
       {},
       2,
       Reason::kCpu},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = decide({kNowSeconds, row.nodes, row.jobs, {{"t", row.quota_millicores}}, row.budget}, {});
    const JobPlan& its = plan_of(plan, "advised");
    CHECK(its.recommended == row.want);
    CHECK(to_string(its.reason) == to_string(row.want_reason));
    CHECK(its.workers == row.jobs[0].allocated_workers);
    CHECK(its.victims.empty());
  }
}

TEST_CASE("two equal jobs in mode Recommend share the rest equally, wherever their workers stand") {
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    const char* where_a_stands;
  };
  const Row rows[] = {
      {"on a node that takes more", {node("n", 12)}, "n"},
      {"one of them on a node that takes no more", {node("n", 8), node("drained", 4, false)}, "drained"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job a = MakeJob("a").mode(Mode::kRecommend).holds(4, row.where_a_stands).measures(kHungry).obj();
    Job b = MakeJob("b").mode(Mode::kRecommend).holds(4, "n").measures(kHungry).obj();
    const Plan plan = decide({kNowSeconds, row.nodes, {a, b}, {}, {}}, {});
    CHECK(plan_of(plan, "a").recommended == 6);
    CHECK(plan_of(plan, "b").recommended == 6);
  }
}

TEST_CASE("a pool in mode Recommend that was scaled in while its node was drained is advised what there is room for") {
  // Three of its five workers are about to go; two stand on the node that takes no more.
  Job job = MakeJob("advised").mode(Mode::kRecommend).holds(3, "n").holds(2, "drained").allocated(3).obj();
  job.observation.measurement = kHungry.steady(5, kNowSeconds);
  const Plan plan = decide({kNowSeconds, {node("n", 6), node("drained", 2, false)}, {job}, {}, {}}, {});
  CHECK(plan.jobs[0].workers == 3);
  CHECK(plan.jobs[0].recommended == 8);
}

}  // namespace
}  // namespace sluice::scheduler::testing
