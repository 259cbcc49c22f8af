// Where workers go while money is short: a node that is too dear is passed by for one that is not.
#include <algorithm>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Names = std::vector<std::string>;

// Wants 11 workers of one core.

// So many cores, a core-hour at `price`. Nodes without GPUs come first, whatever they cost.
Node node(const std::string& name, int cores, double price, int gpus = 0) {
  return {.name = name, .allocatable_millicores = 1000 * cores, .gpus = gpus, .price_per_hour = price * cores};
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
      {"the last core of the dear node stays free, as no job can pay for it",
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

TEST_CASE("a worker that makes way for the budget leaves its quota to its team") {
  // The urgent one can pay for neither node while the other's worker stands on the dear one. With what that gives back
  // it takes the cheaper node, on which there is a core and money for one more.
  const Node dear = node("dear", 1, 1.0), mid = node("mid", 2, 0.5);
  Job urgent = MakeJob("urgent").priority(2).max(1).measures(kHungry).obj();
  Job dearer = MakeJob("dearer").priority(1).max(1).holds(1, "dear").measures(kHungry).obj();
  Job mate = MakeJob("mate").measures(kHungry).obj();
  dearer.quota = mate.quota = "team";
  const ClusterSnapshot snapshot{kNowSeconds, {dear, mid}, {urgent, dearer, mate}, {{"team", 1000}}, 1.3};
  const Plan plan = decide(snapshot, {});
  CHECK(broken_rules(snapshot, plan) == Names{});
  CHECK(plan_of(plan, "urgent").new_worker_nodes == Names{"mid"});
  CHECK(plan_of(plan, "dearer").workers == 0);
  CHECK(plan_of(plan, "dearer").victims.size() == 1);
  CHECK(plan_of(plan, "mate").workers == 1);
  CHECK(to_string(plan_of(plan, "mate").reason) == "Quota");
}

TEST_CASE("a quota has a budget of its own, by situation") {
  const Node cheap = node("cheap", 64, 0.1), dear = node("dear", 64, 1.0);
  const auto of_team = [](Job job) {
    job.quota = "team";
    return job;
  };
  const auto urgent = [](Job job) {
    job.priority = 1;
    return job;
  };
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;  // the first one is looked at
    std::optional<double> budget, budget_of_team;
    int want_workers;
    Reason want_reason;
    std::string want_words;
  };
  const Row rows[] = {
      {"it bounds its jobs",
       {cheap},
       {of_team(hungry("a"))},
       {},
       0.35,
       3,
       Reason::kBudget,
       "The budget of team limits"},
      {"together",
       {cheap},
       {of_team(hungry("a")), of_team(hungry("b"))},
       {},
       0.45,
       2,
       Reason::kBudget,
       "The budget of team limits"},
      {"not the jobs of others", {cheap}, {hungry("a"), of_team(hungry("b"))}, {}, 0.3, 11, Reason::kNeedMet, ""},
      {"the budget of all is less",
       {cheap},
       {of_team(hungry("a"))},
       0.25,
       0.9,
       2,
       Reason::kBudget,
       "The budget limits"},
      {"both bind, the smaller one is named",
       {cheap},
       {of_team(hungry("a"))},
       0.9,
       0.25,
       2,
       Reason::kBudget,
       "The budget of team limits"},
      {"nothing may be spent", {cheap}, {of_team(hungry("a"))}, {}, 0, 0, Reason::kBudget, "The budget of team limits"},
      {"nothing may be spent, and nothing costs anything",
       {node("free", 64, 0)},
       {of_team(hungry("a"))},
       {},
       0,
       11,
       Reason::kNeedMet,
       ""},
      {"it is spent on cheap nodes where the dear one is too dear",
       {dear, node("cheap", 64, 0.1, 8)},
       {of_team(hungry("a"))},
       {},
       0.45,
       4,
       Reason::kBudget,
       "The budget of team limits"},
      {"it was cut: its workers go",
       {cheap},
       {of_team(holding("a", 5, "cheap"))},
       {},
       0.2,
       2,
       Reason::kBudget,
       "The budget of team limits"},
      {"the workers of another quota make way for room, not for money",
       {node("cheap", 2, 0.1)},
       {urgent(of_team(hungry("a"))), holding("b", 2, "cheap")},
       {},
       0.1,
       1,
       Reason::kBudget,
       "The budget of team limits"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const ClusterSnapshot snapshot{
        kNowSeconds, row.nodes, row.jobs, {{"team", std::nullopt, row.budget_of_team}}, row.budget};
    const Plan plan = decide(snapshot, {});
    CHECK(broken_rules(snapshot, plan) == Names{});
    const JobPlan& its = plan_of(plan, "a");
    CHECK(its.workers == row.want_workers);
    CHECK(to_string(its.reason) == to_string(row.want_reason));
    CHECK(its.explanation.substr(0, row.want_words.size()) == row.want_words);
  }
}

TEST_CASE("where money is short, workers of the same quota make way, and those of another stay") {
  // The urgent worker fits nowhere else: its team's money is in its mate's worker, and one core of the node is free.
  const Node only = node("only", 3, 0.1);
  Job urgent = MakeJob("urgent").priority(2).max(1).measures(kHungry).obj();
  Job mate = MakeJob("mate").priority(1).max(1).holds(1, "only").measures(kHungry).obj();
  Job stranger = MakeJob("stranger").max(1).holds(1, "only").measures(kHungry).obj();
  urgent.quota = mate.quota = "team";
  const ClusterSnapshot snapshot{
      kNowSeconds, {only}, {urgent, mate, stranger}, {{"team", std::nullopt, 0.1}}, std::nullopt};
  const Plan plan = decide(snapshot, {});
  CHECK(broken_rules(snapshot, plan) == Names{});
  CHECK(plan_of(plan, "urgent").workers == 1);
  CHECK(plan_of(plan, "mate").workers == 0);
  CHECK(plan_of(plan, "stranger").workers == 1);
}

// Sums count its CPU and its price. No worker that needs memory goes there.
Node without_memory(const std::string& name) { return with_gibibytes(node(name, 4, 0.1), 0); }

TEST_CASE("no worker makes way on a node that stays too dear without it") {
  // The team's budget pays for no worker on the full node, and what the stranger's workers cost is not the team's.
  const Node full = node("full", 2, 0.3);
  Job urgent = hungry("urgent", 1), waiting = hungry("waiting", 1), stranger = holding("stranger", 2, "full");
  urgent.priority = 1;
  urgent.quota = "team";
  urgent.max_workers = waiting.max_workers = 1;
  stranger.max_workers = 2;
  const ClusterSnapshot snapshot{kNowSeconds,
                                 {full, without_memory("sum")},
                                 {urgent, waiting, stranger},
                                 {{"team", std::nullopt, 0.25}},
                                 std::nullopt};
  const Plan plan = decide(snapshot, {});
  CHECK(broken_rules(snapshot, plan) == Names{});
  CHECK(plan_of(plan, "urgent").workers == 0);
  CHECK(plan_of(plan, "waiting").workers == 0);
  CHECK(plan_of(plan, "stranger").workers == 2);
}

TEST_CASE("where only money is short, no worker of another quota makes way, be it the least urgent") {
  // A core is free for the urgent worker; its team's money is in its mate's. Without the stranger's worker, the large
  // one that waits would have room.
  const Node tight = node("tight", 3, 0.2);
  Job urgent = hungry("urgent", 1), mate = holding("mate", 1, "tight"), stranger = holding("stranger", 1, "tight");
  Job large = hungry("large", 1);
  urgent.priority = 2;
  mate.priority = 1;
  urgent.quota = mate.quota = "team";
  urgent.max_workers = mate.max_workers = stranger.max_workers = large.max_workers = 1;
  large.worker_millicores = 2000;
  const ClusterSnapshot snapshot{kNowSeconds,
                                 {tight, without_memory("sum")},
                                 {urgent, mate, stranger, large},
                                 {{"team", std::nullopt, 0.2}},
                                 std::nullopt};
  const Plan plan = decide(snapshot, {});
  CHECK(broken_rules(snapshot, plan) == Names{});
  CHECK(plan_of(plan, "urgent").workers == 1);
  CHECK(plan_of(plan, "mate").workers == 0);
  CHECK(plan_of(plan, "stranger").workers == 1);
  CHECK(plan_of(plan, "large").workers == 0);
}

TEST_CASE("advice of mode Recommend counts what its namespace has spent") {
  const Node cheap = node("cheap", 64, 0.1);
  Job advised = MakeJob("a").mode(Mode::kRecommend).measures(kHungry).obj();
  Job mate = holding("mate", 2, "cheap");
  mate.max_workers = 2;
  advised.quota = mate.quota = "team";
  const ClusterSnapshot snapshot{kNowSeconds, {cheap}, {advised, mate}, {{"team", std::nullopt, 0.55}}, std::nullopt};
  const JobPlan its = plan_of(decide(snapshot, {}), "a");
  CHECK(its.recommended == 3);
  CHECK(to_string(its.reason) == "Budget");
}

}  // namespace
}  // namespace sluice::scheduler::testing
