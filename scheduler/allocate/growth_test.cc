#include "scheduler/allocate/growth.h"

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Wants 11 workers of one core (8 local-equivalent cores, 1 of them its own).

Job hungry(const std::string& name) { return MakeJob(name).measures(kHungry).obj(); }

// Holds so many workers on node "n", and nothing is known of it now; `known`: it was measured until a moment ago.
Job blind(const std::string& name, int workers, bool known = false) {
  Job job = MakeJob(name).holds(workers, "n").measures(kHungry).obj();
  if (known) job.memory = estimate_of(job, kNowSeconds, {}).memory;
  job.observation = {std::nullopt, "no metrics"};
  return job;
}

Job in(Job job, const std::string& quota) {
  job.quota = quota;
  return job;
}

// Its trainer stands on host "h" and receives 150 kB per sample: 115.5 MB/s from each worker.
Job on_network(Job job) {
  job.hosts[0].node = "h";
  job.bytes_per_sample = 150'000;
  return job;
}

// Each worker needs a gibibyte.
Job large(Job job) {
  job.worker_memory_bytes = std::int64_t{1} << 30;
  return job;
}

Node node(const std::string& name, std::int64_t millicores, double price_per_core = 0) {
  return {.name = name,
          .allocatable_millicores = millicores,
          .price_per_hour = price_per_core * static_cast<double>(millicores) / 1000};
}

Node with_network(Node node, double bytes_per_second) {
  node.network_bytes_per_second = bytes_per_second;
  return node;
}

Node with_memory(Node node, int gibibytes) {
  node.free_memory_bytes = std::int64_t{gibibytes} << 30;
  return node;
}

struct Situation {
  std::vector<Node> nodes;
  std::vector<Job> jobs;
  std::vector<Quota> quotas;
  std::optional<double> budget_per_hour;
  Config config;

  Plan plan() const { return decide({kNowSeconds, nodes, jobs, quotas, budget_per_hour}, config); }
};

struct Outcome {
  int workers;
  Reason reason;
};

void check(const Plan& plan, const std::string& name, const Outcome& want) {
  CAPTURE(name);
  CHECK(plan_of(plan, name).workers == want.workers);
  CHECK(to_string(plan_of(plan, name).reason) == to_string(want.reason));
}

TEST_CASE("workers held without metrics count against every limit that they share with others") {
  const Node n = node("n", 64'000);
  struct Row {
    const char* situation;
    Situation at;
    Outcome want;
  };
  const Row rows[] = {
      {"the room of the nodes", {{node("n", 8000)}, {blind("blind", 4), hungry("a")}, {}, {}, {}}, {4, Reason::kCpu}},
      {"a quota",
       {{n}, {in(blind("blind", 4), "team"), in(hungry("a"), "team")}, {{"team", 10'000}}, {}, {}},
       {6, Reason::kQuota}},
      {"another quota does not matter",
       {{n}, {in(blind("blind", 4), "other"), in(hungry("a"), "team")}, {{"team", 10'000}, {"other", 0}}, {}, {}},
       {10, Reason::kQuota}},
      {"a quota, though two of its workers are lost",
       {{n},
        {in(
             [] {
               Job job = blind("blind", 4);
               job.workers.resize(2);
               return job;
             }(),
             "team"),
         in(hungry("a"), "team")},
        {{"team", 10'000}},
        {},
        {}},
       {6, Reason::kQuota}},
      {"the budget", {{node("n", 64'000, 0.05)}, {blind("blind", 4), hungry("a")}, {}, 0.5, {}}, {6, Reason::kBudget}},
      {"the network of the trainers' host",
       {{n, with_network(node("h", 0), 1.2e9)},
        {on_network(blind("blind", 4, true)), on_network(hungry("a"))},
        {},
        {},
        {}},
       {6, Reason::kNetwork}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = row.at.plan();
    check(plan, "blind", {4, Reason::kNoMetrics});
    check(plan, "a", row.want);
  }
}

TEST_CASE("workers held on a cordoned node leave all the room of the other nodes") {
  Job off = MakeJob("off").mode(Mode::kOff).holds(3, "c").obj();
  Node cordoned = node("c", 8000);
  cordoned.schedulable = false;
  check(Situation{{node("n", 4000), cordoned}, {off, hungry("a")}, {}, {}, {}}.plan(), "a", {4, Reason::kCpu});
}

TEST_CASE("the budget is divided at the price of the nodes that have room, not of cheap ones that have none") {
  Node cordoned = node("c", 64'000, 0.01), full = node("f", 64'000, 0.01);
  cordoned.schedulable = false;
  full.requested_by_others_millicores = full.allocatable_millicores;
  for (const Node& cheap : {cordoned, full}) {
    CAPTURE(cheap.name);
    const Plan plan = Situation{{node("n", 64'000, 0.1), cheap}, {hungry("a"), hungry("b")}, {}, 0.6, {}}.plan();
    check(plan, "a", {3, Reason::kBudget});
    check(plan, "b", {3, Reason::kBudget});
  }
}

TEST_CASE("workers that were lost come back after the minima of more important jobs, and before all growth") {
  Job lost = blind("blind", 2);
  lost.allocated_workers = 6;
  Job important = hungry("a");
  important.priority = 1;
  important.min_workers = 1;
  const Plan plan = Situation{{node("n", 4000)}, {lost, important}, {}, {}, {}}.plan();
  check(plan, "a", {1, Reason::kCpu});
  check(plan, "blind", {6, Reason::kNoMetrics});
  CHECK(plan_of(plan, "blind").new_worker_nodes.size() == 1);
}

TEST_CASE("a worker that finds no place gives back what it had been counted against") {
  // The important job's workers need memory, of which there is enough for one; the other one's need none.
  Job first = large(hungry("first"));
  first.weight = 1000;
  struct Row {
    const char* situation;
    Situation at;
    int want_other;
  };
  const Row rows[] = {
      {"room", {{with_memory(node("n", 4000), 1)}, {first, hungry("other")}, {}, {}, {}}, 3},
      {"quota",
       {{with_memory(node("n", 64'000), 1)},
        {in(first, "team"), in(hungry("other"), "team")},
        {{"team", 4000}},
        {},
        {}},
       3},
      {"budget", {{with_memory(node("n", 64'000, 0.1), 1)}, {first, hungry("other")}, {}, 0.4, {}}, 3},
      {"network",
       {{with_memory(node("n", 64'000), 1), with_network(node("h", 0), 4.8e8)},
        {on_network(first), on_network(hungry("other"))},
        {},
        {},
        {}},
       3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = row.at.plan();
    check(plan, "first", {1, Reason::kCpu});
    CHECK(plan_of(plan, "other").workers == row.want_other);
  }
}

TEST_CASE("a trainer on two hosts receives half of the samples on each") {
  Job wide = hungry("wide");
  wide.ranks = 2;
  wide.bytes_per_sample = 150'000;
  wide.hosts = {{"g", 1, 0, 500, 500}, {"h", 1, 0, 500, 500}};
  const Plan plan = Situation{
      {node("n", 64'000), with_network(node("g", 0), 3e8), with_network(node("h", 0), 1e12)},
      {wide},
      {},
      {},
      {}}.plan();
  check(plan, "wide", {5, Reason::kNetwork});
}

TEST_CASE("the highest bid has its place first, whatever the names") {
  // Both are granted a worker; there is memory for one.
  Job low = large(hungry("a")), high = large(hungry("z"));
  low.max_workers = high.max_workers = 1;
  high.weight = 1000;
  const Plan plan = Situation{{with_memory(node("n", 64'000), 1)}, {low, high}, {}, {}, {}}.plan();
  CHECK(plan_of(plan, "a").workers == 0);
  CHECK(plan_of(plan, "z").workers == 1);
}

TEST_CASE("objectives, where they disagree most") {
  // Six cores. The small job needs 4 and the large one 40; both have one of their own.
  const auto needs = [](const std::string& name, double cores) {
    return MakeJob(name).measures(FluidJob{.demand = 1000 * cores}).obj();
  };
  Situation at{{node("n", 6000)}, {needs("large", 40), needs("small", 4)}, {}, {}, {}};
  at.config.objective = Objective::kThroughput;
  CHECK(plan_of(at.plan(), "small").workers >= 3);  // a core is a quarter of what it needs
  at.config.objective = Objective::kFair;
  CHECK(plan_of(at.plan(), "large").workers >= 5);  // it is ten times as far behind
}

// A trainer of eight GPUs on a host of its own, whose feeders' CPU the plan sets.
Job on_host(double knee, std::int64_t request_millicores) {
  Job job = MakeJob("a").gpus(8).obj();
  job.ranks = 8;
  job.local_adjustable = true;
  job.hosts = {{"h", 8, 8, request_millicores, request_millicores}};
  job.observation.measurement = FluidJob{.demand = 1000 * knee,
                                         .local_rate = 1000,
                                         .remote_rate = 770,
                                         .local_cores = static_cast<double>(request_millicores) / 1000}
                                    .steady(0, kNowSeconds - 5);
  return job;
}

Plan beside_empty_node(const Job& job, std::int64_t host_millicores) {
  const Node host{.name = "h", .allocatable_millicores = host_millicores, .gpus = 8};
  return decide({kNowSeconds, {host, node("n", 64'000)}, {job}, {}, {}}, {});
}

TEST_CASE("feeders and workers of one job, by situation") {
  struct Row {
    const char* situation;
    double knee;
    std::int64_t host_millicores, request_millicores;
    void (*set)(Job&);
    std::int64_t want_local;
    int want_workers;
    Reason want_reason;
  };
  const Row rows[] = {
      {"its own host has all it needs", 8, 64'000, 8000, [](Job&) {}, 10'843, 0, Reason::kNeedMet},
      {"the rest from workers", 20, 8000, 8000, [](Job&) {}, 8000, 25, Reason::kNeedMet},
      {"not a whole worker for a crumb of need", 8, 10'400, 10'400, [](Job& job) { job.worker_millicores = 3000; },
       10'400, 0, Reason::kNeedMet},
      {"max binds", 20, 8000, 8000, [](Job& job) { job.max_workers = 3; }, 8000, 3, Reason::kMax},
      {"min is kept, though its host has all it needs", 8, 64'000, 8000, [](Job& job) { job.min_workers = 2; }, 9303, 2,
       Reason::kNeedMet},
      {"never waits: not more than it has", 8, 64'000, 8800,
       [](Job& job) {
         job.observation.measurement->wait_share = 0.005;
         job.observation.measurement->compute_share = 0.995;
       },
       8800, 0, Reason::kSated},
      {"placement Remote: the feeders' cores are not counted on", 10, 64'000, 8000,
       [](Job& job) { job.placement = Placement::kRemote; }, 8000, 18, Reason::kNeedMet},
      {"placement Local: the host, and nothing else", 20, 8000, 8000,
       [](Job& job) { job.placement = Placement::kLocal; }, 8000, 0, Reason::kPlacementLocal},
      {"placement Local: more of the host than it needs at least", 8, 64'000, 8000,
       [](Job& job) { job.placement = Placement::kLocal; }, 10'843, 0, Reason::kPlacementLocal},
      {"the first cores are seen at work: twenty times as many", 2000, 8000, 8000,
       [](Job& job) {
         job.observation.measurement->local = SourceRate{100, 0.1};
         job.max_workers = 1000;
       },
       8000, 2, Reason::kExtrapolation},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = on_host(row.knee, row.request_millicores);
    row.set(job);
    const JobPlan plan = beside_empty_node(job, row.host_millicores).jobs[0];
    CHECK(plan.local[0].request_millicores == Approx(row.want_local).margin(110));
    CHECK(plan.workers == row.want_workers);
    CHECK(to_string(plan.reason) == to_string(row.want_reason));
  }
}

TEST_CASE("the last piece of a large need is no larger than what is missing") {
  // Five per cent of the need are 13 workers.
  Job job = on_host(200, 24'000);
  job.max_workers = 1000;
  const Node host{.name = "h", .allocatable_millicores = 24'000, .gpus = 8};
  const JobPlan plan = decide({kNowSeconds, {host, node("n", 900'000)}, {job}, {}, {}}, {}).jobs[0];
  CHECK(plan.workers == Approx((1.355 * 200 - 24) / 0.77).margin(1));
  CHECK(to_string(plan.reason) == "NeedMet");
}

TEST_CASE("a minimum that is refused is made up for on the own host") {
  // Its workers come before the feeders' growth, and there is a limit that leaves none.
  struct Row {
    const char* situation;
    void (*set)(ClusterSnapshot&, Job&);
    Reason want_reason;
  };
  const Row rows[] = {
      {"no memory on any node",
       [](ClusterSnapshot& snapshot, Job& job) {
         job.worker_memory_bytes = std::int64_t{1} << 30;
         for (Node& node : snapshot.nodes) node.free_memory_bytes = 0;
       },
       Reason::kCpu},
      {"a quota of nothing",
       [](ClusterSnapshot& snapshot, Job& job) {
         job.quota = "team";
         snapshot.quotas = {{"team", 0}};
       },
       Reason::kQuota},
      {"no money",
       [](ClusterSnapshot& snapshot, Job&) {
         for (Node& node : snapshot.nodes) node.price_per_hour = 64;
         snapshot.budget_per_hour = 0.5;
       },
       Reason::kBudget},
      {"a network that carries none, and no room for workers on the host",
       [](ClusterSnapshot& snapshot, Job& job) {
         job.bytes_per_sample = 150'000;
         snapshot.nodes[0].network_bytes_per_second = 1e8;
         snapshot.nodes[0].free_memory_bytes = 0;
         job.worker_memory_bytes = 1;
       },
       Reason::kNetwork},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Node host{.name = "h", .allocatable_millicores = 64'000, .gpus = 8};
    ClusterSnapshot snapshot{kNowSeconds, {host, node("n", 64'000)}, {}, {}, {}};
    Job job = on_host(8, 8000);
    job.min_workers = 2;
    row.set(snapshot, job);
    snapshot.jobs = {job};
    const JobPlan plan = decide(snapshot, {}).jobs[0];
    CHECK(plan.workers == 0);
    CHECK(to_string(plan.reason) == to_string(row.want_reason));
    CHECK(plan.local[0].request_millicores == Approx(10'843).margin(110));
  }
}

TEST_CASE("workers that were shown to be useless are not asked for again, with feeders set by the plan, too") {
  Job job = on_host(20, 8000);
  job.memory = estimate_of(job, kNowSeconds, {}).memory;
  job.memory->useless_above_cores = 4;
  job.memory->useless_since_seconds = kNowSeconds - 100;
  const JobPlan plan = beside_empty_node(job, 8000).jobs[0];
  CHECK(plan.workers == 4);
  CHECK(to_string(plan.reason) == "NoEffect");
}

}  // namespace
}  // namespace sluice::scheduler::testing
