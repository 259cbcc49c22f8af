// The decision against every allocation there is, on clusters small enough to try them all.
//
// Workers of one core, feeders of fixed CPU, hysteresis off, and so few cores that pieces are single
// workers. Then the greedy must be exact: cores, quotas and networks nest, and whole workers fit wherever there is a
// core. So the highest next bid is part of a best allocation (growth.h).
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/decide/decide.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

using Counts = std::vector<int>;  // workers per job

Config plain(Objective objective = Objective::kBalanced) {
  Config config;
  config.objective = objective;
  config.held_bonus = 0;
  return config;
}

// Two or three jobs on at most eight cores, in up to three pieces.
struct Tiny {
  explicit Tiny(unsigned seed) : random(seed) {
    snapshot.taken_at_seconds = kNowSeconds;
    int cores = 2 + upto(7);
    for (int i = 0; cores > 0; ++i) {
      const int here = i == 2 ? cores : 1 + upto(cores);
      snapshot.nodes.push_back({.name = "n" + std::to_string(i), .allocatable_millicores = 1000 * here});
      cores -= here;
    }
    const int jobs = 2 + upto(2);
    for (int i = 1; i <= jobs; ++i) snapshot.jobs.push_back(job("j" + std::to_string(i)));
  }

  int upto(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  Job job(const std::string& name) {
    const FluidJob physics{.demand = 1000.0 * (2 + upto(9)), .local_cores = 0.5 * (1 + upto(4))};
    Job job = MakeJob(name).gpus(1 << upto(4)).weight(50 + upto(150)).max(1 + upto(8)).measures(physics).obj();
    if (upto(2) == 0) remains(600 + upto(20'000), job);
    return job;
  }

  std::mt19937 random;
  ClusterSnapshot snapshot;
};

int cores_of(const ClusterSnapshot& snapshot) {
  std::int64_t millicores = 0;
  for (const Node& node : snapshot.nodes) millicores += node.allocatable_millicores;
  return static_cast<int>(millicores / 1000);
}

// The jobs as the decision sees them, in the order of their names.
class Oracle {
 public:
  Oracle(const ClusterSnapshot& snapshot, const Config& config)
      : snapshot_(snapshot), nodes_(snapshot.nodes, 1000), config_(config) {
    allocations_ = make_allocations(snapshot, nodes_, config, plans_);
  }

  // No job is given more than it wants, and nothing where its curve is flat.
  int most(int job) const {
    const JobAllocation& c = allocations_[job];
    int workers = std::min(c.limit, c.least_workers);
    while (workers < c.limit &&
           progress_slope(c.supply(0, workers), config_.softmin_exponent) > config_.min_slope * (1 + 1e-12))
      ++workers;
    return workers;
  }

  double value(const Counts& workers, const std::function<bool(const Job&)>& counts) const {
    double value = 0;
    for (std::size_t i = 0; i < allocations_.size(); ++i) {
      const JobAllocation& c = allocations_[i];
      if (counts(*c.job)) value += c.worth * progress(c.supply(0, workers[i]), config_.softmin_exponent);
    }
    return value;
  }

  const Job& job(int index) const { return *allocations_[index].job; }
  double traffic(int index) const { return allocations_[index].worker_traffic; }

  // Calls `visit` with every allocation that the cores allow and `feasible` accepts.
  void visit(const std::function<bool(const Counts&)>& feasible,
             const std::function<void(const Counts&)>& visit) const {
    Counts workers(allocations_.size());
    descend(0, cores_of(snapshot_), workers, feasible, visit);
  }

  double best(const std::function<bool(const Counts&)>& feasible) const {
    double best = -1;
    visit(feasible,
          [&](const Counts& workers) { best = std::max(best, value(workers, [](const Job&) { return true; })); });
    return best;
  }

 private:
  void descend(std::size_t job, int cores, Counts& workers, const std::function<bool(const Counts&)>& feasible,
               const std::function<void(const Counts&)>& visit) const {
    if (job == allocations_.size()) {
      if (feasible(workers)) visit(workers);
      return;
    }
    for (workers[job] = 0; workers[job] <= std::min(cores, most(static_cast<int>(job))); ++workers[job])
      descend(job + 1, cores - workers[job], workers, feasible, visit);
    workers[job] = 0;
  }

  const ClusterSnapshot& snapshot_;
  NodeTable nodes_;
  Config config_;
  std::vector<JobPlan> plans_;
  std::vector<JobAllocation> allocations_;
};

Counts counts_of(const Plan& plan) {
  Counts workers;
  for (const JobPlan& job : plan.jobs) workers.push_back(job.workers);
  return workers;
}

const auto anything = [](const Counts&) { return true; };
const auto everybody = [](const Job&) { return true; };

// The decision's table of the curve is off by less than 1e-5: allocations may change places within that.
constexpr double kAsGood = 1 - 1e-4;

// The plan of the oracle's cluster is feasible, and worth as much as any allocation that is.
void expect_best(const ClusterSnapshot& snapshot, const Config& config,
                 const std::function<bool(const Oracle&, const Counts&)>& feasible) {
  const Oracle oracle(snapshot, config);
  const auto allowed = [&](const Counts& workers) { return feasible(oracle, workers); };
  const Counts workers = counts_of(decide(snapshot, config));
  RC_ASSERT(allowed(workers));
  RC_ASSERT(oracle.value(workers, everybody) >= kAsGood * oracle.best(allowed));
}

TEST_CASE("no allocation of a few cores is worth more than the plan's") {
  property("exhaustive", [](unsigned seed) {
    const Tiny tiny(seed);
    for (const Objective objective : {Objective::kBalanced, Objective::kThroughput, Objective::kCompletionTime}) {
      expect_best(tiny.snapshot, plain(objective), [](const Oracle&, const Counts&) { return true; });
    }
  });
}

TEST_CASE("nor while teams share quotas") {
  property("exhaustive quotas", [](unsigned seed) {
    Tiny tiny(seed);
    tiny.snapshot.quotas = {{"red", 1000 * tiny.upto(5)}, {"blue", 500 + 1000 * tiny.upto(4)}};
    for (Job& job : tiny.snapshot.jobs) job.quota = std::array{"red", "blue", ""}[tiny.upto(3)];
    const auto within_quotas = [&](const Oracle& oracle, const Counts& workers) {
      return std::all_of(tiny.snapshot.quotas.begin(), tiny.snapshot.quotas.end(), [&](const Quota& quota) {
        std::int64_t millicores = 0;
        for (int i = 0; i < std::ssize(workers); ++i)
          if (oracle.job(i).quota == quota.name) millicores += 1000 * workers[i];
        return millicores <= *quota.worker_millicores;
      });
    };
    expect_best(tiny.snapshot, plain(), within_quotas);
  });
}

TEST_CASE("nor while money is short and a core costs the same everywhere") {
  property("exhaustive budget", [](unsigned seed) {
    Tiny tiny(seed);
    for (Node& node : tiny.snapshot.nodes)
      node.price_per_hour = 0.25 * static_cast<double>(node.allocatable_millicores);
    const int affordable = tiny.upto(9);
    tiny.snapshot.budget_per_hour = 250 * (affordable + 0.5);
    const auto within_budget = [&](const Oracle&, const Counts& workers) {
      int all = 0;
      for (const int count : workers) all += count;
      return all <= affordable;
    };
    expect_best(tiny.snapshot, plain(), within_budget);
  });
}

TEST_CASE("nor while the network of a trainer's host is narrow") {
  property("exhaustive network", [](unsigned seed) {
    Tiny tiny(seed);
    // Hosts that offer no cores; each carries a few workers' worth.
    for (const char* host : {"h1", "h2"})
      tiny.snapshot.nodes.push_back({.name = host, .network_bytes_per_second = 1e8 * (0.5 + tiny.upto(5))});
    for (Job& job : tiny.snapshot.jobs) {
      job.hosts[0].node = tiny.upto(2) == 0 ? "h1" : "h2";
      job.bytes_per_sample = 1e8 / 770;  // 100 MB/s from each worker
    }
    const auto fits = [&](const Oracle& oracle, const Counts& workers) {
      return std::all_of(tiny.snapshot.nodes.begin(), tiny.snapshot.nodes.end(), [&](const Node& node) {
        double received = 0;
        for (int i = 0; i < std::ssize(workers); ++i)
          if (oracle.job(i).hosts[0].node == node.name) received += workers[i] * oracle.traffic(i);
        return received <= node.network_bytes_per_second.value_or(1e18) * (1 + 1e-9);
      });
    };
    expect_best(tiny.snapshot, plain(), fits);
  });
}

TEST_CASE("the more important come first: no allocation is better for them, and of those none for the others") {
  property("exhaustive priorities", [](unsigned seed) {
    Tiny tiny(seed);
    for (Job& job : tiny.snapshot.jobs) job.priority = tiny.upto(2);
    const auto important = [](const Job& job) { return job.priority > 0; };
    const auto others = [](const Job& job) { return job.priority == 0; };
    const Oracle oracle(tiny.snapshot, plain());
    double best_of_important = 0;
    oracle.visit(anything, [&](const Counts& workers) {
      best_of_important = std::max(best_of_important, oracle.value(workers, important));
    });
    double best_of_others = 0;
    oracle.visit(anything, [&](const Counts& workers) {
      if (oracle.value(workers, important) >= kAsGood * best_of_important)
        best_of_others = std::max(best_of_others, oracle.value(workers, others));
    });
    const Counts workers = counts_of(decide(tiny.snapshot, plain()));
    RC_ASSERT(oracle.value(workers, important) >= kAsGood * best_of_important);
    RC_ASSERT(oracle.value(workers, others) >= kAsGood * best_of_others);
  });
}

TEST_CASE("minima come first, and the rest is divided as well as any division could") {
  property("exhaustive minima", [](unsigned seed) {
    Tiny tiny(seed);
    int minima = 0;
    for (Job& job : tiny.snapshot.jobs) minima += job.min_workers = std::min(tiny.upto(4), job.max_workers);
    RC_PRE(minima <= cores_of(tiny.snapshot));
    const auto above_minima = [&](const Oracle& oracle, const Counts& workers) {
      for (int i = 0; i < std::ssize(workers); ++i)
        if (workers[i] < oracle.job(i).min_workers) return false;
      return true;
    };
    expect_best(tiny.snapshot, plain(), above_minima);
  });
}

TEST_CASE("a larger quota: its team gets no less, at most what was added, and no other job gains by it") {
  property("larger quota", [](unsigned seed) {
    Tiny tiny(seed);
    tiny.snapshot.quotas = {{"team", 1000 * tiny.upto(6)}};
    for (Job& job : tiny.snapshot.jobs) job.quota = tiny.upto(3) > 0 ? "team" : "";
    const auto workers = [&](const ClusterSnapshot& snapshot, const std::string& quota) {
      const Plan plan = decide(snapshot, plain());
      int sum = 0;
      for (const Job& job : snapshot.jobs) sum += job.quota == quota ? plan_of(plan, job.id.name).workers : 0;
      return sum;
    };
    ClusterSnapshot larger = tiny.snapshot;
    *larger.quotas[0].worker_millicores += 1000;
    const int team = workers(tiny.snapshot, "team"), team_with_more = workers(larger, "team");
    RC_ASSERT(team_with_more == team || team_with_more == team + 1);
    RC_ASSERT(workers(larger, "") <= workers(tiny.snapshot, ""));
  });
}

TEST_CASE("hysteresis: workers move only where the gain exceeds the bonus for held workers") {
  property("hysteresis", [](unsigned seed) {
    Tiny tiny(seed);
    std::map<std::string, std::int64_t> room;
    for (const Node& node : tiny.snapshot.nodes) room[node.name] = node.allocatable_millicores;
    Config config = plain();
    config.held_bonus = 0.1;
    Counts held;
    for (Job& job : tiny.snapshot.jobs) {
      const Oracle oracle(tiny.snapshot, config);
      const auto at = static_cast<int>(&job - tiny.snapshot.jobs.data());
      int count = tiny.upto(4);
      for (auto& [node, millicores] : room)
        for (; count > 0 && millicores >= 1000 && std::ssize(job.workers) < oracle.most(at);
             --count, millicores -= 1000)
          job.workers.push_back({job.id.name + "-" + std::to_string(job.workers.size()), node, true, kNowSeconds - 900,
                                 kNowSeconds - 800, false});
      job.allocated_workers = static_cast<int>(job.workers.size());
      job.observation.measurement = FluidJob{.demand = job.observation.measurement->samples_per_second /
                                                       job.observation.measurement->compute_share,
                                             .local_cores = static_cast<double>(job.hosts[0].limit_millicores) / 1000}
                                        .steady(job.allocated_workers, kNowSeconds);
      held.push_back(job.allocated_workers);
    }
    const Oracle oracle(tiny.snapshot, config);
    for (int i = 0; i < std::ssize(held); ++i)
      if (held[i] > oracle.most(i)) return;  // it practically never waits: what goes is not missed
    const Counts workers = counts_of(decide(tiny.snapshot, config));
    RC_ASSERT(oracle.value(workers, everybody) >= kAsGood * oracle.value(held, everybody));
    // What is there counts for ten per cent more to each: so much better the best may be, were all of it to move.
    RC_ASSERT(oracle.value(workers, everybody) >= kAsGood / (1 + config.held_bonus) * oracle.best(anything));
  });
}

TEST_CASE("throughput: two equal jobs get together what one of twice the size would get, but for an odd worker") {
  property("merged", [](unsigned seed) {
    Tiny tiny(seed);
    ClusterSnapshot two = tiny.snapshot, one = tiny.snapshot;
    const int gpus = 1 << tiny.upto(3), most = 1 + tiny.upto(5);
    const FluidJob half{.demand = 1000.0 * (2 + tiny.upto(9)), .local_cores = 0.5 * (1 + tiny.upto(4))};
    FluidJob whole = half;
    whole.demand *= 2, whole.local_cores *= 2;
    for (const char* name : {"twin-a", "twin-b"})
      two.jobs.push_back(MakeJob(name).gpus(gpus).max(most).measures(half).obj());
    one.jobs.push_back(MakeJob("whole").gpus(2 * gpus).max(2 * most).measures(whole).obj());
    const Plan of_two = decide(two, plain(Objective::kThroughput));
    const Plan of_one = decide(one, plain(Objective::kThroughput));
    const int twins = plan_of(of_two, "twin-a").workers + plan_of(of_two, "twin-b").workers;
    RC_ASSERT(std::abs(twins - plan_of(of_one, "whole").workers) <= 1);
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
