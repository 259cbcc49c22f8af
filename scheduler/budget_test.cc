// Where workers go while money is short: a node that is too dear is passed by for one that is not.
#include <algorithm>

#include "scheduler/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Names = std::vector<std::string>;

// Wants 11 workers of one core.
const FluidJob kHungry{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

// So many cores, a core-hour at `price`. Nodes without GPUs come first, whatever they cost.
Node node(const std::string& name, int cores, double price, int gpus = 0) {
  return {.name = name,
          .allocatable_millicores = 1000 * cores,
          .gpus = gpus,
          .gpus_in_use = gpus,
          .price_per_hour = price * cores};
}

Node with_gibibytes(Node node, int gibibytes) {
  node.free_memory_bytes = std::int64_t{gibibytes} << 30;
  return node;
}

Node full(Node node) {
  node.requested_by_others_millicores = node.allocatable_millicores;
  return node;
}

Node cordoned(Node node) {
  node.schedulable = false;
  return node;
}

Job hungry(const std::string& name, int gibibytes = 0) {
  Job job = MakeJob(name).measures(kHungry).obj();
  job.worker_memory_bytes = std::int64_t{gibibytes} << 30;
  return job;
}

Job holding(const std::string& name, int workers, const std::string& on) {
  return MakeJob(name).holds(workers, on).measures(kHungry).obj();
}

// One of its two workers is bound to no node yet.
Job half_bound() {
  Job job = MakeJob("a").holds(1, "cheap").max(2).allocated(2).measures(kHungry).obj();
  job.workers.push_back({"pending", "", false, kNowSeconds - 5, 0, false});
  return job;
}

TEST_CASE("while money is short, by situation") {
  const Node dear = node("dear", 64, 1.0), cheap = node("cheap", 64, 0.1, 8);
  Job displaced = holding("a", 2, "dear");
  displaced.max_workers = 2;
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;  // the first one is looked at
    double budget;
    int want_workers;
    Names want_new;  // nodes, sorted
    Reason want_reason;
  };
  const Row rows[] = {
      {"the first choice is too dear, a trainer's host is not",
       {dear, cheap},
       {hungry("a")},
       0.35,
       3,
       {"cheap", "cheap", "cheap"},
       Reason::kBudget},
      {"the first choice once, then what is left buys two elsewhere",
       {dear, cheap},
       {hungry("a")},
       1.25,
       3,
       {"cheap", "cheap", "dear"},
       Reason::kBudget},
      {"all are too dear", {dear}, {hungry("a")}, 0.9, 0, {}, Reason::kBudget},
      {"the one that could be afforded is full", {dear, full(cheap)}, {hungry("a")}, 0.9, 0, {}, Reason::kBudget},
      {"the one that could be afforded has memory for two",
       {dear, with_gibibytes(cheap, 2)},
       {hungry("a", 1)},
       0.9,
       2,
       {"cheap", "cheap"},
       Reason::kBudget},
      {"memory is short everywhere: not for want of money",
       {with_gibibytes(dear, 0), with_gibibytes(cheap, 2)},
       {hungry("a", 1)},
       900,
       2,
       {"cheap", "cheap"},
       Reason::kCpu},
      {"the last core of the dear node is passed by, and is there for nobody who cannot pay",
       {node("dear", 1, 1.0), cheap},
       {hungry("a"), hungry("b")},
       0.45,
       2,
       {"cheap", "cheap"},
       Reason::kBudget},
      {"a worker that is bound nowhere yet finds a place that can be paid for",
       {dear, cheap},
       {half_bound()},
       0.25,
       2,
       {},
       Reason::kMax},
      {"and none where it cannot be paid for",
       {dear, node("cheap", 1, 0.1, 8)},
       {half_bound()},
       0.25,
       1,
       {},
       Reason::kBudget},
      {"everything is being drained: what is paid for stays",
       {cordoned(cheap)},
       {holding("a", 3, "cheap")},
       0.5,
       3,
       {},
       Reason::kCpu},
      {"those on a cheap node that is being drained stay, though another one could not be paid for elsewhere",
       {dear, cordoned(cheap)},
       {holding("a", 5, "cheap")},
       0.5,
       5,
       {},
       Reason::kBudget},
      {"a cheap node that is being drained is no place for new ones",
       {dear, cordoned(cheap)},
       {holding("a", 2, "cheap")},
       0.9,
       2,
       {},
       Reason::kBudget},
      {"and it takes one on the dear node as well, where the money lasts",
       {dear, cordoned(cheap)},
       {holding("a", 2, "cheap")},
       1.2,
       3,
       {"dear"},
       Reason::kBudget},
      {"money without end", {dear, cheap}, {hungry("a")}, 1e300, 11, Names(11, "dear"), Reason::kNeedMet},
      {"nothing costs anything: the budget does not matter",
       {node("free", 8, 0)},
       {hungry("a")},
       0,
       8,
       Names(8, "free"),
       Reason::kCpu},
      {"the budget was cut: those on the dear node go, one after the other",
       {dear, cheap},
       {displaced},
       1.5,
       1,
       {},
       Reason::kBudget},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const ClusterSnapshot snapshot{kNowSeconds, row.nodes, row.jobs, {}, row.budget};
    const Plan plan = decide(snapshot, {});
    CHECK(broken_rules(snapshot, plan) == Names{});
    const JobPlan& its = plan_of(plan, "a");
    CHECK(its.workers == row.want_workers);
    Names nodes = its.new_worker_nodes;
    std::sort(nodes.begin(), nodes.end());
    CHECK(nodes == row.want_new);
    CHECK(to_string(its.reason) == to_string(row.want_reason));
  }
}

TEST_CASE("who makes way for want of money goes on where it is cheaper, or leaves its part of the quota to its team") {
  // The urgent one can pay for neither node while the other's worker stands on the dear one. With what that gives back
  // it takes the cheaper node, on which there is a core and money for one more.
  const Node dear = node("dear", 1, 1.0), mid = node("mid", 2, 0.5);
  Job urgent = MakeJob("urgent").priority(2).max(1).measures(kHungry).obj();
  Job dearer = MakeJob("dearer").priority(1).max(1).holds(1, "dear").measures(kHungry).obj();
  Job mate = MakeJob("mate").measures(kHungry).obj();
  dearer.quota = mate.quota = "team";
  const ClusterSnapshot snapshot{kNowSeconds, {dear, mid}, {urgent, dearer, mate}, {{"team", 1000, {}}}, 1.3};
  struct Row {
    bool moves;  // a plan may stop a worker and start its successor elsewhere
    int want_dearer, want_mate;
    Reason want_reason;  // of its mate
  };
  for (const Row& row : {Row{true, 1, 0, Reason::kQuota}, Row{false, 0, 1, Reason::kQuota}}) {
    CAPTURE(row.moves);
    Config config;
    config.replaces_workers = row.moves;
    const Plan plan = decide(snapshot, config);
    CHECK(broken_rules(snapshot, plan) == Names{});
    CHECK(plan_of(plan, "urgent").new_worker_nodes == Names{"mid"});
    CHECK(plan_of(plan, "dearer").workers == row.want_dearer);
    CHECK(plan_of(plan, "dearer").victims.size() == 1);
    CHECK(plan_of(plan, "mate").workers == row.want_mate);
    CHECK(to_string(plan_of(plan, "mate").reason) == to_string(row.want_reason));
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
