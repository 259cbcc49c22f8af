// What people do to a running cluster, and where its jobs are a few minutes later: decide() in a loop with a fluid
// model.
#include <algorithm>
#include <array>
#include <random>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/fluid.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Two jobs at rest on 16 + 32 cores, a core for 0.1 an hour. Vision needs 11 workers, and is fed well by 14; speech
// needs 5, and is fed well by 7.
class Cluster {
 public:
  Cluster() : loop({{"n1", 16'000}, {"n2", 32'000}}, {}, {}) {
    for (Node& node : loop.snapshot().nodes)
      node.price_per_hour = 0.1 * static_cast<double>(node.allocatable_millicores) / 1000;
    loop.add(MakeJob("vision").obj(), {.demand = 8000, .local_cores = 1});
    loop.add(MakeJob("speech").obj(), {.demand = 4000, .local_cores = 1});
    loop.run(300);
  }

  Job& job(const std::string& name) {
    return *std::find_if(snapshot().jobs.begin(), snapshot().jobs.end(), [&](Job& j) { return j.id.name == name; });
  }
  Node& node(const std::string& name) {
    return *std::find_if(snapshot().nodes.begin(), snapshot().nodes.end(), [&](Node& n) { return n.name == name; });
  }
  ClusterSnapshot& snapshot() { return loop.snapshot(); }

  FluidLoop loop;
};

// Numbers of workers.
struct Range {
  int least, most;
};
constexpr Range kAsBefore{-1, -1};

TEST_CASE("a change from outside, and the workers five minutes later") {
  struct Row {
    const char* situation;
    void (*act)(Cluster&);
    Range want_vision, want_speech;
    const char* want_reason;  // of vision
  };
  const Row rows[] = {
      {"nothing", [](Cluster&) {}, kAsBefore, kAsBefore, ""},
      {"three workers die", [](Cluster& c) { c.job("vision").workers.resize(c.job("vision").workers.size() - 3); },
       kAsBefore, kAsBefore, ""},
      {"the larger node is drained and cleared: there is room for fifteen or sixteen",
       [](Cluster& c) {
         c.node("n2").schedulable = false;
         for (Job& job : c.snapshot().jobs)
           std::erase_if(job.workers, [](const Worker& worker) { return worker.node == "n2"; });
       },
       {9, 12},
       {4, 7},
       "Cpu"},
      {"the smaller node is cordoned: no worker has to go", [](Cluster& c) { c.node("n1").schedulable = false; },
       kAsBefore, kAsBefore, ""},
      {"its maximum is lowered", [](Cluster& c) { c.job("vision").max_workers = 5; }, {5, 5}, kAsBefore, "Max"},
      {"its minimum is raised", [](Cluster& c) { c.job("vision").min_workers = 20; }, {20, 20}, kAsBefore, "Min"},
      {"its minimum is raised beyond its team's quota",
       [](Cluster& c) {
         c.job("vision").min_workers = 20;
         c.job("vision").quota = "team";
         c.snapshot().quotas = {{"team", 17'000}};
       },
       {17, 17},
       kAsBefore,
       "Quota"},
      {"its team gets a small quota",
       [](Cluster& c) {
         c.job("vision").quota = "team";
         c.snapshot().quotas = {{"team", 4000}};
       },
       {4, 4},
       kAsBefore,
       "Quota"},
      {"both are in that team",
       [](Cluster& c) {
         for (Job& job : c.snapshot().jobs) job.quota = "team";
         c.snapshot().quotas = {{"team", 8000}};
       },
       {4, 6},
       {2, 4},
       "Quota"},
      {"the budget is cut to what eight workers cost",
       [](Cluster& c) { c.snapshot().budget_per_hour = 0.8; },
       {4, 6},
       {2, 4},
       "Budget"},
      {"the larger node becomes twenty times as dear, and the budget pays for ten workers on the other",
       [](Cluster& c) {
         c.node("n2").price_per_hour = 64;
         c.snapshot().budget_per_hour = 1;
       },
       {4, 7},
       {3, 6},
       "Budget"},
      {"the operator restarts and has forgotten everything",
       [](Cluster& c) {
         for (Job& job : c.snapshot().jobs) job.memory.reset();
       },
       kAsBefore, kAsBefore, ""},
      {"the operator restarts while Prometheus is away",
       [](Cluster& c) {
         for (Job& job : c.snapshot().jobs) job.memory.reset();
         c.loop.lose_metrics(true);
       },
       kAsBefore, kAsBefore, "NoMetrics"},
      {"its workers become half as large",
       [](Cluster& c) { c.job("vision").worker_millicores = 500; },
       {22, 28},
       kAsBefore,
       ""},
      {"it is suspended", [](Cluster& c) { c.job("vision").running = false; }, {0, 0}, kAsBefore, "NotRunning"},
      {"it is told to stay on its hosts",
       [](Cluster& c) { c.job("vision").placement = Placement::kLocal; },
       {0, 0},
       kAsBefore,
       "PlacementLocal"},
      {"it is left alone, and its demand doubles",
       [](Cluster& c) { c.job("vision").mode = Mode::kOff, c.loop.physics("vision").demand *= 2; }, kAsBefore,
       kAsBefore, "ModeOff"},
      {"it is only advised, and its demand doubles",
       [](Cluster& c) { c.job("vision").mode = Mode::kRecommend, c.loop.physics("vision").demand *= 2; }, kAsBefore,
       kAsBefore, ""},
      {"the other one becomes important and needs all there is: the minimum stays",
       [](Cluster& c) {
         c.job("vision").min_workers = 2;
         c.job("speech").priority = 1;
         c.loop.physics("speech").demand = 80'000;
       },
       {2, 2},
       {46, 46},
       "Cpu"},
      {"a node is added: no job needed it",
       [](Cluster& c) {
         c.snapshot().nodes.push_back({"n3", 64'000});
       },
       kAsBefore, kAsBefore, ""},
      {"a spot node is taken back, with all that stood there: there is room elsewhere",
       [](Cluster& c) {
         c.node("n1").allocatable_millicores = 64'000;
         std::erase_if(c.snapshot().nodes, [](const Node& node) { return node.name == "n2"; });
         for (Job& job : c.snapshot().jobs)
           std::erase_if(job.workers, [](const Worker& worker) { return worker.node == "n2"; });
       },
       kAsBefore, kAsBefore, ""},
      {"its trainer moves to a GPU of twice the speed",
       [](Cluster& c) { c.loop.physics("vision").demand *= 2; },
       {22, 32},
       kAsBefore,
       ""},
      {"its trainer moves to a GPU of half the speed",
       [](Cluster& c) { c.loop.physics("vision").demand /= 2; },
       {4, 8},
       kAsBefore,
       ""},
      {"a release of its pipeline needs half the CPU",
       [](Cluster& c) {
         c.loop.physics("vision").local_rate *= 2;
         c.loop.physics("vision").remote_rate *= 2;
       },
       {4, 8},
       kAsBefore,
       ""},
      {"its weight becomes a hundredth: there is room for both", [](Cluster& c) { c.job("vision").weight = 1; },
       kAsBefore, kAsBefore, ""},
      {"its weight becomes a hundredth, and cores are short",
       [](Cluster& c) {
         c.job("vision").weight = 1;
         c.node("n1").requested_by_others_millicores = 13'000;
         c.node("n2").requested_by_others_millicores = 29'000;
       },
       {0, 1},
       {5, 6},
       "Cpu"},
      {"memory is short on both nodes: room for four workers on each",
       [](Cluster& c) {
         for (Node& node : c.snapshot().nodes) node.free_memory_bytes = 4;
         for (Job& job : c.snapshot().jobs) job.worker_memory_bytes = 1, job.workers.clear();
       },
       {3, 6},
       {2, 5},
       "Cpu"},
      {"a third job of its kind arrives, and the cores are just enough",
       [](Cluster& c) { c.loop.add(MakeJob("third").obj(), {.demand = 8000, .local_cores = 1}); },
       {10, 16},
       {4, 8},
       ""},
      {"its feeder is given eight cores: it needs no workers any more",
       [](Cluster& c) {
         c.loop.physics("vision").local_cores = 10;
         for (TrainerHost& host : c.job("vision").hosts) host.request_millicores = host.limit_millicores = 10'000;
       },
       {0, 3},
       kAsBefore,
       ""},
      {"others' pods take all but six cores",
       [](Cluster& c) {
         c.node("n1").requested_by_others_millicores = 13'000;
         c.node("n2").requested_by_others_millicores = 29'000;
       },
       {2, 4},
       {2, 4},
       "Cpu"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster;
    const int vision = cluster.job("vision").allocated_workers, speech = cluster.job("speech").allocated_workers;
    row.act(cluster);
    cluster.loop.run(300);
    const auto check = [](int workers, Range want, int before) {
      if (want.least < 0) want = {before, before};
      CHECK(workers >= want.least);
      CHECK(workers <= want.most);
    };
    check(cluster.job("vision").allocated_workers, row.want_vision, vision);
    check(cluster.job("speech").allocated_workers, row.want_speech, speech);
    const Plan& plan = cluster.loop.plan();
    if (row.want_reason[0] != '\0') CHECK(to_string(plan_of(plan, "vision").reason) == row.want_reason);
    CHECK(broken_rules(cluster.snapshot(), decide(cluster.snapshot(), {})) == std::vector<std::string>{});
    for (const std::string name : {"vision", "speech"}) {
      CAPTURE(name);
      const Job& job = cluster.job(name);
      CHECK(std::ssize(job.workers) == job.allocated_workers);  // everything has been carried out
    }
  }
}

TEST_CASE("limits are set for five minutes and lifted again: the workers come back") {
  struct Row {
    const char* situation;
    void (*set)(Cluster&);
    void (*lift)(Cluster&);
  };
  const Row rows[] = {
      {"maximum", [](Cluster& c) { c.job("vision").max_workers = 3; },
       [](Cluster& c) { c.job("vision").max_workers = 100; }},
      {"budget", [](Cluster& c) { c.snapshot().budget_per_hour = 0.3; },
       [](Cluster& c) { c.snapshot().budget_per_hour.reset(); }},
      {"suspension", [](Cluster& c) { c.job("vision").running = false; },
       [](Cluster& c) { c.job("vision").running = true; }},
      {"placement", [](Cluster& c) { c.job("vision").placement = Placement::kLocal; },
       [](Cluster& c) { c.job("vision").placement = Placement::kAuto; }},
      {"an important neighbour",
       [](Cluster& c) { c.job("speech").priority = 1, c.loop.physics("speech").demand = 80'000; },
       [](Cluster& c) { c.job("speech").priority = 0, c.loop.physics("speech").demand = 4000; }},
      {"no node at all",
       [](Cluster& c) {
         for (Node& node : c.snapshot().nodes) node.schedulable = false;
         for (Job& job : c.snapshot().jobs) job.workers.clear();
       },
       [](Cluster& c) {
         for (Node& node : c.snapshot().nodes) node.schedulable = true;
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster;
    row.set(cluster);
    cluster.loop.run(300);
    REQUIRE(cluster.job("vision").allocated_workers <= 3);
    row.lift(cluster);
    cluster.loop.run(120);
    CHECK(cluster.loop.speed("vision") >= 0.9);
    CHECK(cluster.job("vision").allocated_workers >= 10);
    CHECK(cluster.job("vision").allocated_workers <= 16);
  }
}

// What a person might do to the cluster at any time.
void disturb(Cluster& c, std::mt19937& random) {
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Job& job = c.job(upto(2) == 0 ? "vision" : "speech");
  Node& node = c.snapshot().nodes[upto(2)];
  switch (upto(14)) {
    case 0: job.max_workers = upto(20); break;
    case 1: job.min_workers = upto(20); break;
    case 2: job.priority = upto(3) - 1; break;
    case 3: job.weight = 1 + upto(1000); break;
    case 4: job.mode = std::array{Mode::kAuto, Mode::kOff, Mode::kRecommend}[upto(3)]; break;
    case 5: job.running = !job.running; break;
    case 6: node.schedulable = !node.schedulable; break;
    case 7: node.requested_by_others_millicores = 1000 * upto(17); break;
    case 8: std::erase_if(job.workers, [&](const Worker& worker) { return worker.node == node.name; }); break;
    case 9: c.loop.lose_metrics(upto(2) == 0); break;
    case 10: c.loop.physics(job.id.name).demand = 1000.0 * (1 + upto(30)); break;
    case 11: c.snapshot().budget_per_hour = 0.1 * upto(40); break;
    case 12: job.quota = "team", c.snapshot().quotas = {{"team", 1000 * upto(20)}}; break;
    default: job.memory.reset(); break;
  }
}

// As it was when both were at rest, but for what the jobs hold, and what is remembered of them.
void restore(Cluster& c) {
  for (Job& job : c.snapshot().jobs) {
    const Job fresh = MakeJob(job.id.name).obj();
    job.max_workers = fresh.max_workers, job.min_workers = fresh.min_workers;
    job.priority = fresh.priority, job.weight = fresh.weight;
    job.mode = fresh.mode, job.running = true, job.quota.clear();
  }
  for (Node& node : c.snapshot().nodes) node.schedulable = true, node.requested_by_others_millicores = 0;
  c.loop.lose_metrics(false);
  c.loop.physics("vision").demand = 8000;
  c.loop.physics("speech").demand = 4000;
  c.snapshot().budget_per_hour.reset();
}

TEST_CASE("an evil quarter of an hour: no plan breaks a rule meanwhile, and ten minutes later all is well again") {
  for (unsigned seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Cluster cluster;
    for (int minute = 0; minute < 15; ++minute) {
      disturb(cluster, random);
      CAPTURE(minute);
      for (int round = 0; round < 4; ++round) {
        REQUIRE(broken_rules(cluster.snapshot(), decide(cluster.snapshot(), {})) == std::vector<std::string>{});
        cluster.loop.run(15);
      }
    }
    restore(cluster);
    cluster.loop.run(600);
    for (const char* name : {"vision", "speech"}) {
      CAPTURE(name);
      const Job& job = cluster.job(name);
      CHECK(cluster.loop.speed(name) >= 0.9);
      CHECK(std::ssize(job.workers) == job.allocated_workers);
      CHECK(job.allocated_workers <= (name == std::string("vision") ? 18 : 11));
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
