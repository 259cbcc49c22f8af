#include "scheduler/allocate/placement.h"

#include <algorithm>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Names = std::vector<std::string>;

Node node(const std::string& name, std::int64_t millicores) {
  return {.name = name, .allocatable_millicores = millicores};
}

Node with_memory(Node node, int gibibytes) {
  node.free_memory_bytes = std::int64_t{gibibytes} << 30;
  return node;
}

// Workers of `millicores` and `gibibytes` each.
Job sized(const MakeJob& maker, std::int64_t millicores, int gibibytes) {
  Job job = maker.obj();
  job.worker_millicores = millicores;
  job.worker_memory_bytes = std::int64_t{gibibytes} << 30;
  return job;
}

Plan decided(std::vector<Node> nodes, std::vector<Job> jobs) {
  return decide({kNowSeconds, std::move(nodes), std::move(jobs), {}, {}}, {});
}

TEST_CASE("which of two workers goes first") {
  struct Row {
    const char* situation;
    void (*differ)(Worker& stays, Worker& goes, Node& of_one, Node& of_other);
  };
  const Row rows[] = {
      {"ready outlives starting", [](Worker&, Worker& goes, Node&, Node&) { goes.ready = false; }},
      {"bound outlives unbound", [](Worker&, Worker& goes, Node&, Node&) { goes.node.clear(); }},
      {"a starting one outlives one on a cordoned node",
       [](Worker& stays, Worker&, Node&, Node& of_other) { stays.ready = false, of_other.schedulable = false; }},
      {"cheap outlives dear", [](Worker&, Worker&, Node&, Node& of_other) { of_other.price_per_hour = 1; }},
      {"the usual outlives spot", [](Worker&, Worker&, Node&, Node& of_other) { of_other.spot = true; }},
      {"a cheap spot node outlives a dear one",
       [](Worker&, Worker&, Node& of_one, Node& of_other) { of_one.spot = true, of_other.price_per_hour = 1; }},
      {"old outlives young", [](Worker&, Worker& goes, Node&, Node&) { goes.created_at_seconds += 1; }},
      {"an old one outlives a young one on a fuller node",
       [](Worker&, Worker& goes, Node&, Node& of_other) {
         goes.created_at_seconds += 1, of_other.allocatable_millicores = 2000;
       }},
      {"one on a full node outlives one on an empty node",
       [](Worker&, Worker&, Node& of_one, Node&) { of_one.allocatable_millicores = 2000; }},
      {"by name", [](Worker& stays, Worker&, Node&, Node&) { stays.name = "a"; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    for (const bool in_order : {true, false}) {  // of the snapshot: it means nothing
      std::vector<Node> nodes = {node("n1", 8000), node("n2", 8000)};
      Worker stays{"z", "n1", true, kNowSeconds - 500, kNowSeconds - 490, false}, goes = stays;
      goes.name = "b", goes.node = "n2";
      row.differ(stays, goes, nodes[0], nodes[1]);
      Job job = MakeJob("job").measures(kHungry).max(1).allocated(2).obj();
      job.workers = in_order ? std::vector{stays, goes} : std::vector{goes, stays};
      CHECK(decided(nodes, {job}).jobs[0].victims == Names{"b"});
    }
  }
}

TEST_CASE("one on a node that has to be cleared goes before any other") {
  // The trainers' feeders need all but a core of n1; the workers there are the older ones.
  Job trainer = MakeJob("trainer").gpus(8).obj();
  trainer.local_adjustable = true;
  trainer.hosts = {{"n1", 1, 8, 8000, 8000}};
  trainer.observation.measurement = FluidJob{.demand = 30'000, .local_cores = 8}.steady(0, kNowSeconds - 5);
  Job job = MakeJob("a").measures(kHungry).max(1).allocated(2).obj();
  job.workers = {{"a", "n1", true, kNowSeconds - 900, kNowSeconds - 890, false},
                 {"b", "n2", true, kNowSeconds - 500, kNowSeconds - 490, false}};
  Node host = node("n1", 9000);
  host.gpus = 8;
  const Plan plan = decided({host, node("n2", 8000)}, {trainer, job});
  CHECK(plan_of(plan, "a").victims == Names{"a"});
}

TEST_CASE("of two workers the one on the crowded node goes, and another job's can stay there") {
  Node crowded = node("n1", 2000);
  crowded.requested_by_others_millicores = 1000;
  Job first = MakeJob("first").priority(1).measures(kHungry).max(1).allocated(2).obj();
  first.workers = {{"old", "n1", true, kNowSeconds - 900, kNowSeconds - 890, false},
                   {"young", "n2", true, kNowSeconds - 500, kNowSeconds - 490, false}};
  const Plan plan =
      decided({crowded, node("n2", 8000)}, {first, MakeJob("second").holds(1, "n1").measures(kHungry).max(1).obj()});
  CHECK(plan_of(plan, "first").victims == Names{"old"});
  CHECK(plan_of(plan, "second").workers == 1);
  CHECK(plan_of(plan, "second").victims.empty());
}

TEST_CASE("on a node that has become too small the worker of the more important stays, whatever the other one bids") {
  Node crowded = node("n1", 2000);
  crowded.requested_by_others_millicores = 1000;
  const Plan plan = decided({crowded, node("n2", 1000)},
                            {MakeJob("dear").weight(10'000).holds(1, "n1").measures(kHungry).max(1).obj(),
                             MakeJob("important").priority(1).weight(1).holds(1, "n1").measures(kHungry).max(1).obj()});
  CHECK(plan_of(plan, "important").victims.empty());
  CHECK(plan_of(plan, "dear").victims == Names{"dear-worker-0"});
}

TEST_CASE("a worker that is leaving does not make its node look crowded") {
  Job job = MakeJob("a").measures(kHungry).max(1).allocated(2).obj();
  job.workers = {{"a", "n1", true, kNowSeconds - 900, kNowSeconds - 890, false},
                 {"leaving", "n1", true, kNowSeconds - 900, kNowSeconds - 890, true},
                 {"b", "n2", true, kNowSeconds - 500, kNowSeconds - 490, false}};
  CHECK(decided({node("n1", 1000), node("n2", 8000)}, {job}).jobs[0].victims == Names{"b"});
}

TEST_CASE("a worker on a node that has disappeared goes alone") {
  Job job = MakeJob("a").holds(2, "n1").measures(kHungry).max(2).obj();
  job.workers.push_back({"leaving", "gone", true, kNowSeconds - 900, kNowSeconds - 890, true});
  const Plan plan = decided({node("n1", 8000)}, {job});
  CHECK(plan.jobs[0].workers == 2);
  CHECK(plan.jobs[0].victims.empty());
  CHECK(plan.jobs[0].new_worker_nodes.empty());
}

TEST_CASE("a node without memory for the one has room for the other") {
  // The emptiest node has no memory: the important job passes it by, and leaves it for the other.
  const Plan plan = decided({with_memory(node("large", 4000), 0), with_memory(node("small", 1000), 1)},
                            {sized(MakeJob("a").priority(1).measures(kHungry).max(1), 1000, 1),
                             sized(MakeJob("b").measures(kHungry).max(3), 1000, 0)});
  CHECK(plan_of(plan, "a").new_worker_nodes == Names{"small"});
  CHECK(plan_of(plan, "b").new_worker_nodes == Names{"large", "large", "large"});
}

TEST_CASE("workers that are there already count against the memory of their node") {
  const Plan plan =
      decided({with_memory(node("n", 8000), 3)}, {sized(MakeJob("a").holds(2, "n").measures(kHungry), 1000, 1)});
  CHECK(plan_of(plan, "a").workers == 3);
}

TEST_CASE("a large worker of a higher priority") {
  const auto large = [](const MakeJob& job) {
    return sized(MakeJob(job).priority(1).measures(kHungry).max(1), 2000, 2);
  };
  const auto small = [](const MakeJob& job) { return sized(job, 500, 0); };
  SECTION("takes the node on which the least has to go, be it the first or the last") {
    for (const int on_first : {1, 3}) {
      CAPTURE(on_first);
      Job job = small(MakeJob("small").measures(kHungry).max(4).holds(on_first, "n1").holds(4 - on_first, "n2"));
      const Plan plan = decided({node("n1", 2000), node("n2", 2000)}, {large(MakeJob("large")), job});
      CHECK(plan_of(plan, "large").new_worker_nodes == Names{on_first == 1 ? "n1" : "n2"});
      CHECK(plan_of(plan, "small").victims == Names{on_first == 1 ? "small-worker-0" : "small-worker-3"});
    }
  }
  SECTION("takes one on which more has to go, as that one has no memory for it") {
    Job job = small(MakeJob("small").measures(kHungry).max(4).holds(3, "n1").holds(1, "n2"));
    const Plan plan = decided({node("n1", 2000), with_memory(node("n2", 2000), 1)}, {large(MakeJob("large")), job});
    CHECK(plan_of(plan, "large").new_worker_nodes == Names{"n1"});
    CHECK(plan_of(plan, "small").victims.size() == 3);
  }
  SECTION("takes their memory with their room") {
    Job job = MakeJob("small").measures(kHungry).max(4).holds(4, "n1").obj();
    job.worker_millicores = 500;
    job.worker_memory_bytes = std::int64_t{1} << 29;
    const Plan plan = decided({with_memory(node("n1", 2000), 2)}, {large(MakeJob("large")), job});
    CHECK(plan_of(plan, "large").workers == 1);
    CHECK(plan_of(plan, "small").workers == 0);
  }
  SECTION("takes their memory, though there is CPU for all of them") {
    Job job = sized(MakeJob("small").measures(kHungry).max(2).holds(2, "n1"), 500, 1);
    const Plan plan = decided({with_memory(node("n1", 4000), 3)}, {large(MakeJob("large")), job});
    CHECK(plan_of(plan, "large").workers == 1);
    CHECK(plan_of(plan, "small").victims == Names{"small-worker-1"});
  }
  SECTION("does not displace what must not be stopped") {
    const Plan plan =
        decided({node("n1", 2000)}, {large(MakeJob("large")), small(MakeJob("small").holds(4, "n1").misses("gone"))});
    CHECK(plan_of(plan, "large").workers == 0);
    CHECK(plan_of(plan, "small").victims.empty());
  }
  SECTION("does not displace equals") {
    Job equal = small(MakeJob("small").priority(1).measures(kHungry).max(3).holds(3, "n1"));
    equal.weight = 10'000;
    const Plan plan = decided({node("n1", 2000)}, {large(MakeJob("large")), equal});
    CHECK(plan_of(plan, "small").workers == 3);
  }
  SECTION("is not put on a cordoned node, though enough could go there") {
    Job job = small(MakeJob("small").measures(kHungry).max(4).holds(4, "n1"));
    Node cordoned = node("n1", 2000);
    cordoned.schedulable = false;
    const Plan plan = decided({cordoned, node("n2", 1500)}, {large(MakeJob("large")), job});
    CHECK(plan_of(plan, "large").workers == 0);
    CHECK(plan_of(plan, "small").workers == 4);
  }
}

TEST_CASE("a large worker displaces others only where it can then go") {
  // Two cores free in sum, in two pieces: a core beside the small ones on "n1", a core on "n2". The large worker needs
  // two cores, two gibibytes and 231 MB/s.
  struct Row {
    const char* situation;
    void (*set)(Node& n1, Node& n2, ClusterSnapshot& rest);
    Names want_large;  // nodes
    int want_small;
  };
  const auto nothing = [](Node&, Node&, ClusterSnapshot&) {};
  const Row rows[] = {
      {"it can go there", nothing, {"n1"}, 0},
      {"there is no memory for it",
       [](Node& n1, Node&, ClusterSnapshot&) { n1.free_memory_bytes = std::int64_t{1} << 30; },
       {},
       2},
      {"there is just the memory that it needs",
       [](Node& n1, Node&, ClusterSnapshot&) { n1.free_memory_bytes = std::int64_t{2} << 30; },
       {"n1"},
       0},
      {"what it sends does not fit out of the node",
       [](Node& n1, Node&, ClusterSnapshot&) { n1.network_bytes_per_second = 2.3e8; },
       {},
       2},
      {"the network out of the node is just wide enough",
       [](Node& n1, Node&, ClusterSnapshot&) { n1.network_bytes_per_second = 2.32e8; },
       {"n1"},
       0},
      {"it is too dear, even with what they would give back",
       [](Node& n1, Node&, ClusterSnapshot& rest) { n1.price_per_hour = 2, rest.budget_per_hour = 1.9; },
       {},
       2},
      {"with what they give back there is enough money",
       [](Node& n1, Node&, ClusterSnapshot& rest) { n1.price_per_hour = 2, rest.budget_per_hour = 2; },
       {"n1"},
       0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job large = sized(MakeJob("large").priority(1).measures(kHungry).max(1), 2000, 2);
    large.bytes_per_sample = 150'000;
    Job small = sized(MakeJob("small").measures(kHungry).max(2).holds(2, "n1"), 500, 0);
    ClusterSnapshot snapshot{kNowSeconds, {}, {large, small}, {}, {}};
    Node n1 = node("n1", 2000), n2 = node("n2", 1000);
    row.set(n1, n2, snapshot);
    snapshot.nodes = {n1, n2};
    const Plan plan = decide(snapshot, {});
    CHECK(plan_of(plan, "large").new_worker_nodes == row.want_large);
    CHECK(plan_of(plan, "small").workers == row.want_small);
  }
}

TEST_CASE("a worker that makes way has no successor in the same decision") {
  // It holds one of the two workers that it is to have, and there is a core on the other node.
  const Plan plan = decided({node("n1", 2000), node("n2", 1000)},
                            {sized(MakeJob("large").priority(1).measures(kHungry).max(1), 2000, 0),
                             sized(MakeJob("small").measures(kHungry).max(2).holds(1, "n1"), 500, 0)});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"n1"});
  CHECK(plan_of(plan, "small").victims == Names{"small-worker-0"});
  CHECK(plan_of(plan, "small").workers == 0);
  CHECK(plan_of(plan, "small").new_worker_nodes.empty());
}

TEST_CASE("a worker that was to go for a large one stays where the large one finds no place") {
  // Seven half-cores on 3.5 cores; two cores are granted to the large worker, which clears "n1". By the sum four have
  // to go, those of the last names first; the three on "n2" stand in no worker's way.
  const Plan plan = decided({node("n1", 2000), node("n2", 1500)},
                            {sized(MakeJob("large").priority(1).measures(kHungry).max(1), 2000, 0),
                             sized(MakeJob("small").measures(kHungry).max(7).holds(4, "n1").holds(3, "n2"), 500, 0)});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"n1"});
  CHECK(plan_of(plan, "small").workers == 3);
  Names victims = plan_of(plan, "small").victims;
  std::sort(victims.begin(), victims.end());
  CHECK(victims == Names{"small-worker-0", "small-worker-1", "small-worker-2", "small-worker-3"});
}

TEST_CASE("for a large worker as few as possible make way, of the lowest priority, the last in the order of keeping") {
  struct Row {
    const char* situation;
    std::vector<Worker> of_low, of_lower;  // priorities 0 and -1
    Names want_low, want_lower;            // victims
  };
  const Worker old{"old", "n1", true, 100, 110, false};
  const Worker young{"young", "n1", true, 500, 510, false};
  const Worker starting{"starting", "n1", false, 50, 0, false};
  const Row rows[] = {
      {"the young one", {old, young}, {}, {"young"}, {}},
      {"the one that starts, though it is the oldest", {old, starting}, {}, {"starting"}, {}},
      {"that of the lower priority, though it is older", {young}, {old}, {}, {"old"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    for (const bool in_order : {true, false}) {  // of the snapshot: it means nothing
      const auto holding = [&](const MakeJob& maker, std::vector<Worker> workers) {
        Job job = sized(maker, 500, 0);
        job.allocated_workers = job.max_workers = static_cast<int>(workers.size());
        if (!in_order) std::reverse(workers.begin(), workers.end());
        job.workers = workers;
        return job;
      };
      const Plan plan = decided({node("n1", 2000), node("n2", 500)},
                                {sized(MakeJob("large").priority(1).measures(kHungry).max(1), 1500, 0),
                                 holding(MakeJob("low").measures(kHungry), row.of_low),
                                 holding(MakeJob("lower").priority(-1).measures(kHungry), row.of_lower)});
      CHECK(plan_of(plan, "large").new_worker_nodes == Names{"n1"});
      CHECK(plan_of(plan, "low").victims == row.want_low);
      CHECK(plan_of(plan, "lower").victims == row.want_lower);
    }
  }
}

TEST_CASE("a job that makes way for the budget is told of the budget, not of room") {
  // A core on "dear" costs 1 an hour; the rest of the cheap node holds no worker, but its price is the one that counts.
  Node dear = node("dear", 4000), cheap = node("cheap", 500);
  dear.price_per_hour = 4;
  cheap.price_per_hour = 0.05;
  const Job large = sized(MakeJob("large").priority(1).measures(kHungry).max(1), 2000, 0);
  const Job small = sized(MakeJob("small").measures(kHungry).max(1).holds(1, "dear"), 1000, 0);
  const Job tiny = sized(MakeJob("tiny").measures(kHungry).max(0), 500, 0);
  const Plan plan = decide({kNowSeconds, {dear, cheap}, {large, small, tiny}, {}, 2.5}, {});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"dear"});
  CHECK(plan_of(plan, "small").workers == 0);
  CHECK(to_string(plan_of(plan, "small").reason) == "Budget");
}

TEST_CASE("what a large worker has no node for is taken up by others, piece by piece, each worker on a node") {
  const FluidJob huge{.demand = 60'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 4};
  const Plan plan = decided(
      {node("n1", 10'000), node("n2", 10'000)},
      {sized(MakeJob("large").priority(1).measures(kHungry).max(1), 16'000, 0), MakeJob("small").measures(huge).obj()});
  CHECK(plan_of(plan, "large").workers == 0);
  CHECK(plan_of(plan, "small").workers == 20);
  CHECK(plan_of(plan, "small").new_worker_nodes.size() == 20);
}

TEST_CASE("a worker whose place was taken does not go on elsewhere in the same decision") {
  // The large worker is granted two cores and fits nowhere; meanwhile the other one has taken the cheap node.
  Node cheap = node("n1", 1000), dear = node("n2", 1500), small = node("n3", 500);
  dear.price_per_hour = 1;
  const Plan plan =
      decided({cheap, dear, small}, {sized(MakeJob("large").priority(2).measures(kHungry).max(1), 2000, 0),
                                     sized(MakeJob("other").priority(1).measures(kHungry).max(1), 1000, 0),
                                     sized(MakeJob("was-there").holds(1, "n1").measures(kHungry).max(1), 1000, 0),
                                     sized(MakeJob("tiny").not_running(), 500, 0)});
  CHECK(plan_of(plan, "large").workers == 0);
  CHECK(plan_of(plan, "other").new_worker_nodes == Names{"n1"});
  CHECK(plan_of(plan, "was-there").workers == 0);
  CHECK(plan_of(plan, "was-there").victims == Names{"was-there-worker-0"});
  CHECK(plan_of(plan, "was-there").new_worker_nodes.empty());
}

TEST_CASE("a worker bound nowhere that must not be stopped stays on the list, with room or without") {
  Job off = MakeJob("off").mode(Mode::kOff).holds(1, "n1").allocated(2).obj();
  off.workers.push_back({"pending", "", false, kNowSeconds - 5, 0, false});
  const Plan plan = decided({node("n1", 1000)}, {off});
  CHECK(plan.jobs[0].workers == 2);
  CHECK(plan.jobs[0].victims.empty());
  CHECK(plan.jobs[0].new_worker_nodes.empty());
}

TEST_CASE("and it is not started a second time where a large worker leaves the room that it had been granted") {
  Job blind = MakeJob("blind").holds(1, "n1").allocated(2).misses("gone").obj();
  blind.workers.push_back({"pending", "", false, kNowSeconds - 5, 0, false});
  const Plan plan = decided({node("n1", 2000), node("n2", 1000)},
                            {blind, sized(MakeJob("large").priority(1).min(1).max(1).measures(kHungry), 2000, 0)});
  CHECK(plan_of(plan, "large").workers == 0);
  CHECK(plan_of(plan, "blind").workers == 2);
  CHECK(plan_of(plan, "blind").victims.empty());
  CHECK(plan_of(plan, "blind").new_worker_nodes.empty());
}

TEST_CASE("workers that must not be stopped stay, even on a node that other pods have filled") {
  // Two workers in mode Off on a node of which other pods have taken three quarters since.
  Node taken = node("n1", 4000);
  taken.requested_by_others_millicores = 3000;
  const Plan plan = decided({taken, node("n2", 1000)}, {MakeJob("off").mode(Mode::kOff).holds(2, "n1").obj(),
                                                        MakeJob("a").measures(kHungry).obj()});
  CHECK(plan_of(plan, "off").workers == 2);
  CHECK(plan_of(plan, "off").victims.empty());
  CHECK(plan_of(plan, "off").new_worker_nodes.empty());
  for (const std::string& name : plan_of(plan, "a").new_worker_nodes) CHECK(name == "n2");
}

}  // namespace
}  // namespace sluice::scheduler::testing
