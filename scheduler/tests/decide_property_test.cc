// The guarantees of decide.h on random clusters. A failure prints the seed that reproduces it (RC_PARAMS).

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include <rapidcheck.h>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Which clusters a property is about.
struct Population {
  std::vector<std::int64_t> worker_millicores = {250, 500, 1000, 3000};
  bool only_auto = false;
  bool lost_and_draining_workers = true;
  bool minima = true;
  bool limits = false;  // quotas, prices, a budget
};

const Population kUniform{
    .worker_millicores = {500}, .only_auto = true, .lost_and_draining_workers = false, .minima = false};

const Population kLimited{.limits = true};

template <typename T>
T pick(const std::vector<T>& values) {
  return *rc::gen::elementOf(values);
}

FluidJob some_physics() {
  return {.demand = pick<double>({50, 300, 920, 4000, 12000}),
          .local_rate = pick<double>({100, 400, 1250, 3000}),
          .remote_rate = pick<double>({80, 300, 1000, 2500}),
          .local_cores = pick<double>({0.25, 1, 3}),
          .q = pick<double>({4, 6, 40})};
}

// Gives a job workers on nodes that have room for them, as a cluster would have done.
void give_workers(Job& job, std::vector<Node>& room, const Population& population) {
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count && !room.empty(); ++i) {
    Node& node = room[*rc::gen::inRange<std::size_t>(0, room.size())];
    if (node.allocatable_millicores - node.requested_by_others_millicores < job.worker_millicores) continue;
    node.requested_by_others_millicores += job.worker_millicores;
    const bool draining = population.lost_and_draining_workers && *rc::gen::inRange(0, 8) == 0;
    const double age_seconds = *rc::gen::inRange(0, 100);
    const bool ready = age_seconds > 10;
    job.workers.push_back({job.id.name + "-worker-" + std::to_string(i), node.name, ready, kNowSeconds - age_seconds,
                           kNowSeconds - age_seconds + 5, draining});
    if (!draining) ++job.allocated_workers;
  }
  if (population.lost_and_draining_workers) job.allocated_workers += pick<int>({0, 0, 0, 1, 2});
}

void give_metrics(Job& job) {
  const FluidJob physics = some_physics();
  const auto local_millicores = static_cast<std::int64_t>(physics.local_cores * 1000);
  job.hosts = {{.request_millicores = local_millicores, .limit_millicores = local_millicores}};
  const double remote_cores = static_cast<double>(job.allocated_workers * job.worker_millicores) / 1000;
  const int fate = *rc::gen::inRange(0, 10);
  if (fate >= 2) job.observation.measurement = physics.steady(remote_cores, kNowSeconds - 5);
  if (fate == 2) job.observation.measurement->batches_in_window = 3;
  if (fate == 3) job.observation.measurement->local.reset();
  if (fate == 4) job.observation.measurement->remote.reset();
  if (fate == 5) job.observation.measurement->window_end_seconds -= 300;
  if (fate == 1 || fate > 6) {
    EstimatorMemory memory;
    memory.demand_samples_per_second = physics.demand;
    memory.local_rate_per_core = Tracked::starting_at(physics.local_rate);
    memory.knee_cores = Tracked::starting_at(pick<double>({0.5, 2, 8, 30}));
    memory.feedback = pick<double>({0.7, 1, 1.5});
    job.memory = memory;
  }
}

Job some_job(const std::string& name, std::vector<Node>& room, const Population& population) {
  Job job = MakeJob(name).obj();
  job.running = *rc::gen::inRange(0, 8) != 0;
  job.gpus = pick<int>({0, 1, 4, 8});
  job.weight = pick<int>({1, 100, 100, 1000});
  job.priority = pick<int>({0, 0, 0, 1, -1});
  if (*rc::gen::inRange(0, 3) == 0) job.remaining_samples = pick<double>({5e3, 6e5, 3.6e7});
  if (!population.only_auto) {
    job.mode = pick<Mode>({Mode::kAuto, Mode::kAuto, Mode::kRecommend, Mode::kOff});
    job.placement =
        pick<Placement>({Placement::kAuto, Placement::kAuto, Placement::kAuto, Placement::kRemote, Placement::kLocal});
  }
  job.min_workers = population.minima ? pick<int>({0, 0, 1, 3}) : 0;
  job.max_workers = job.min_workers + *rc::gen::inRange(0, 12);
  job.worker_millicores = pick(population.worker_millicores);
  give_workers(job, room, population);
  give_metrics(job);
  return job;
}

void limit(ClusterSnapshot& snapshot) {
  for (const char* name : {"small", "large"})
    snapshot.quotas.push_back({name, std::int64_t{250} * *rc::gen::inRange(0, 40)});
  if (*rc::gen::inRange(0, 2) > 0) snapshot.quotas[0].budget_per_hour = 0.1 * *rc::gen::inRange(0, 20);
  for (Job& job : snapshot.jobs) job.quota = pick<std::string>({"", "small", "large", "undefined"});
  for (Node& node : snapshot.nodes) {
    node.gpus = pick<int>({0, 0, 8});
    node.price_per_hour = pick<double>({0, 0.02, 0.1, 1}) * static_cast<double>(node.allocatable_millicores) / 1000;
  }
  if (*rc::gen::inRange(0, 3) > 0) snapshot.budget_per_hour = 0.1 * *rc::gen::inRange(0, 60);
}

ClusterSnapshot some_cluster(const Population& population = {}) {
  ClusterSnapshot snapshot;
  snapshot.taken_at_seconds = kNowSeconds;
  const int nodes = *rc::gen::inRange(0, 5);
  for (int i = 0; i < nodes; ++i) {
    const std::int64_t allocatable = 250 * *rc::gen::inRange(0, 40);
    snapshot.nodes.push_back({"n" + std::to_string(i), allocatable,
                              allocatable * *rc::gen::inRange(0, 5) / 4 / 250 * 250, *rc::gen::inRange(0, 6) != 0});
  }
  std::vector<Node> room = snapshot.nodes;
  const int jobs = *rc::gen::inRange(1, 7);
  for (int i = 0; i < jobs; ++i) snapshot.jobs.push_back(some_job("j" + std::to_string(i), room, population));
  if (population.limits) limit(snapshot);
  return snapshot;
}

void holds(const std::string& name, const std::function<void()>& body) { CHECK(rc::check(name, body)); }

TEST_CASE("no node is given more than it has free") {
  holds("capacity", [] {
    const ClusterSnapshot snapshot = some_cluster();
    const Plan plan = decide(snapshot, {});
    std::map<std::string, std::int64_t> used;
    for (const JobPlan& job_plan : plan.jobs) {
      const Job& job = job_of(snapshot, job_plan.id);
      for (const std::string& node : job_plan.new_worker_nodes) used[node] += job.worker_millicores;
      for (const Worker& worker : job.workers) {
        const bool stays = !worker.draining && std::find(job_plan.victims.begin(), job_plan.victims.end(),
                                                         worker.name) == job_plan.victims.end();
        if (stays) used[worker.node] += job.worker_millicores;
      }
    }
    std::int64_t total = 0;
    for (const Node& node : snapshot.nodes) {
      RC_ASSERT(used[node.name] <=
                std::max<std::int64_t>(0, node.allocatable_millicores - node.requested_by_others_millicores));
      total += used[node.name];
    }
    RC_ASSERT(total == plan.granted_millicores);
    RC_ASSERT(plan.granted_millicores <= plan.capacity_millicores);
  });
}

TEST_CASE("the order of nodes, jobs and workers means nothing") {
  holds("permutation", [] {
    ClusterSnapshot snapshot = some_cluster();
    const std::string want = text_of(decide(snapshot, {}));
    std::mt19937 random(*rc::gen::arbitrary<unsigned>());
    std::shuffle(snapshot.nodes.begin(), snapshot.nodes.end(), random);
    std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);
    for (Job& job : snapshot.jobs) std::shuffle(job.workers.begin(), job.workers.end(), random);
    RC_ASSERT(text_of(decide(snapshot, {})) == want);
  });
}

TEST_CASE("min and max are kept") {
  holds("bounds", [] {
    const ClusterSnapshot snapshot = some_cluster();
    for (const JobPlan& plan : decide(snapshot, {}).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (job.mode == Mode::kOff) continue;
      RC_ASSERT(plan.recommended <= job.max_workers);
      const bool may_be_below = !job.running || job.placement == Placement::kLocal || plan.reason == Reason::kCpu;
      RC_ASSERT(plan.recommended >= job.min_workers || may_be_below);
      if (!job.running || job.placement == Placement::kLocal) RC_ASSERT(plan.recommended == 0);
    }
  });
}

TEST_CASE("quotas, prices and a budget: no plan breaks a rule, and a minimum gives way to nothing else") {
  holds("limits", [] {
    const ClusterSnapshot snapshot = some_cluster(kLimited);
    const Plan plan = decide(snapshot, {});
    RC_ASSERT(broken_rules(snapshot, plan) == std::vector<std::string>{});
    for (const JobPlan& job_plan : plan.jobs) {
      const Job& job = job_of(snapshot, job_plan.id);
      if (!job.running || job.mode == Mode::kOff || job.placement == Placement::kLocal) continue;
      if (job_plan.recommended >= job.min_workers) continue;
      RC_ASSERT(is_limit(job_plan.reason));
      RC_ASSERT(job_plan.reason != Reason::kQuota || job.quota == "small" || job.quota == "large");
      const bool of_its_quota = job.quota == "small" && snapshot.quotas[0].budget_per_hour;
      RC_ASSERT(job_plan.reason != Reason::kBudget || snapshot.budget_per_hour || of_its_quota);
    }
  });
}

TEST_CASE("modes Off and Recommend leave the number of workers alone") {
  holds("modes", [] {
    const ClusterSnapshot snapshot = some_cluster();
    for (const JobPlan& plan : decide(snapshot, {}).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (job.mode == Mode::kAuto) {
        RC_ASSERT(plan.recommended == plan.workers);
      } else {
        RC_ASSERT(plan.workers == job.allocated_workers);
      }
    }
  });
}

TEST_CASE("missing metrics never lower an allocation") {
  holds("missing metrics", [] {
    const ClusterSnapshot snapshot = some_cluster();
    for (const JobPlan& plan : decide(snapshot, {}).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (plan.estimate.metrics_usable() || !job.running || job.placement == Placement::kLocal) continue;
      RC_ASSERT(plan.workers >= std::min(job.allocated_workers, job.max_workers) || job.mode != Mode::kAuto);
      RC_ASSERT(!plan.estimate.metrics_problem.empty());
    }
  });
}

TEST_CASE("a job that hardly waits never gets additional workers") {
  holds("sated", [] {
    const ClusterSnapshot snapshot = some_cluster();
    const Config config;
    for (const JobPlan& plan : decide(snapshot, config).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (!plan.estimate.metrics_usable() || plan.estimate.wait_share > config.starved_above) continue;
      RC_ASSERT(plan.workers <= std::max(job.allocated_workers, job.min_workers));
    }
  });
}

TEST_CASE("the victims are exactly the surplus of live workers") {
  holds("victims", [] {
    const ClusterSnapshot snapshot = some_cluster();
    for (const JobPlan& plan : decide(snapshot, {}).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      const auto live =
          std::count_if(job.workers.begin(), job.workers.end(), [](const Worker& worker) { return !worker.draining; });
      RC_ASSERT(std::ssize(plan.victims) == std::max<std::ptrdiff_t>(0, live - plan.workers));
      for (const std::string& victim : plan.victims) {
        RC_ASSERT(std::any_of(job.workers.begin(), job.workers.end(),
                              [&](const Worker& w) { return w.name == victim && !w.draining; }));
      }
    }
  });
}

TEST_CASE("a higher priority never gets fewer workers") {
  holds("priority", [] {
    ClusterSnapshot snapshot = some_cluster(kUniform);
    const std::size_t chosen = *rc::gen::inRange<std::size_t>(0, snapshot.jobs.size());
    const JobId id = snapshot.jobs[chosen].id;
    const int before = plan_of(decide(snapshot, {}), id.name).workers;
    snapshot.jobs[chosen].priority += *rc::gen::inRange(1, 4);
    RC_ASSERT(plan_of(decide(snapshot, {}), id.name).workers >= before);
  });
}

TEST_CASE("a higher weight never gets fewer workers") {
  holds("weight", [] {
    ClusterSnapshot snapshot = some_cluster(kUniform);
    const std::size_t chosen = *rc::gen::inRange<std::size_t>(0, snapshot.jobs.size());
    const JobId id = snapshot.jobs[chosen].id;
    const int before = plan_of(decide(snapshot, {}), id.name).workers;
    snapshot.jobs[chosen].weight *= 3;
    RC_ASSERT(plan_of(decide(snapshot, {}), id.name).workers >= before);
  });
}

TEST_CASE("a plan that has been carried out is confirmed, on the same measurements") {
  holds("stable", [] {
    const ClusterSnapshot snapshot = some_cluster(kUniform);
    const Plan first = decide(snapshot, {});
    const ClusterSnapshot after = applied(snapshot, first);
    const Plan second = decide(after, {});
    for (std::size_t i = 0; i < first.jobs.size(); ++i) {
      RC_ASSERT(second.jobs[i].workers == first.jobs[i].workers);
      RC_ASSERT(second.jobs[i].victims.empty());
      RC_ASSERT(second.jobs[i].estimate.memory == first.jobs[i].estimate.memory);
    }
  });
}

TEST_CASE("no job is told that there is no room while there is") {
  holds("work-conserving", [] {
    const ClusterSnapshot snapshot = some_cluster(kUniform);
    const Plan plan = decide(snapshot, {});
    const bool refused =
        std::any_of(plan.jobs.begin(), plan.jobs.end(), [](const JobPlan& job) { return job.reason == Reason::kCpu; });
    if (!refused) return;
    const ClusterSnapshot after = applied(snapshot, plan);
    for (const Node& node : after.nodes) {
      std::int64_t free = node.allocatable_millicores - node.requested_by_others_millicores;
      for (const Job& job : after.jobs) {
        for (const Worker& worker : job.workers) free -= worker.node == node.name ? job.worker_millicores : 0;
      }
      RC_ASSERT(free < kUniform.worker_millicores[0] || !node.schedulable);
    }
  });
}

TEST_CASE("workers of mixed sizes settle after a few decisions") {
  holds("settles", [] {
    ClusterSnapshot snapshot = some_cluster();
    std::string last;
    bool settled = false;
    for (int i = 0; i < 6 && !settled; ++i) {
      const Plan plan = decide(snapshot, {});
      snapshot = applied(std::move(snapshot), plan);
      std::ostringstream counts;
      for (const JobPlan& job : plan.jobs) counts << job.workers << ' ';
      settled = counts.str() == last;
      last = counts.str();
    }
    RC_ASSERT(settled);
  });
}

TEST_CASE("what a job in mode Recommend is advised changes nothing for the others") {
  holds("advice", [] {
    ClusterSnapshot snapshot = some_cluster();
    const Plan with_metrics = decide(snapshot, {});
    for (Job& job : snapshot.jobs) {
      if (job.mode == Mode::kRecommend) job.observation = {std::nullopt, "gone"};
    }
    const Plan without = decide(snapshot, {});
    for (std::size_t i = 0; i < without.jobs.size(); ++i)
      RC_ASSERT(with_metrics.jobs[i].workers == without.jobs[i].workers);
  });
}

// Figures as a broken exporter, a mistyped manifest or a node of another kind might give them.
void make_absurd(ClusterSnapshot& snapshot, std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  const auto rarely = [&] { return random() % 3 == 0; };
  for (Node& node : snapshot.nodes) {
    if (rarely()) node.allocatable_millicores = static_cast<std::int64_t>(one_of({0, 1, 999, 1e6}));
    if (rarely()) node.requested_by_others_millicores = static_cast<std::int64_t>(one_of({0, 1, 1e15}));
    if (rarely()) node.price_per_hour = one_of({1e-30, 1e-9, 1e9, 1e30});
    if (rarely()) node.free_memory_bytes = static_cast<std::int64_t>(one_of({0, 1, 9e18}));
    if (rarely()) node.network_bytes_per_second = one_of({0, 1e-30, 1e30});
  }
  for (Job& job : snapshot.jobs) {
    if (rarely()) job.max_workers = static_cast<int>(one_of({0, 1, 1e9}));
    if (rarely()) job.min_workers = static_cast<int>(one_of({0, 1, 5000}));
    if (rarely()) job.weight = static_cast<int>(one_of({1, 10'000}));
    if (rarely()) job.priority = static_cast<int>(one_of({-2e9, 2e9}));
    if (rarely()) job.remaining_samples = one_of({0, 1e-30, 1e30});
    if (rarely()) job.worker_memory_bytes = static_cast<std::int64_t>(one_of({1, 1e15}));
    if (rarely()) job.bytes_per_sample = one_of({0, 1e-30, 1e30});
    if (rarely()) job.gpus = static_cast<int>(one_of({0, 1e9}));
    if (!job.observation.measurement) continue;
    Measurement& m = *job.observation.measurement;
    for (double* figure : {&m.samples_per_second, &m.compute_share, &m.wait_share, &m.batches_in_window})
      if (rarely()) *figure = one_of({0, 1e-30, 1e-6, 1, 1e30});
    for (std::optional<SourceRate>* rate : {&m.local, &m.remote})
      if (rarely()) *rate = SourceRate{one_of({0, 1e-30, 1, 1e30}), one_of({0, 1e-30, 1, 1e30})};
  }
  if (rarely()) snapshot.budget_per_hour = one_of({0, 1e-30, 1e30});
  for (Quota& quota : snapshot.quotas) quota.worker_millicores = static_cast<std::int64_t>(one_of({0, 1, 9e18}));
}

TEST_CASE("absurd figures: the plan is still one that can be carried out, and says only numbers") {
  holds("absurd", [] {
    ClusterSnapshot snapshot = some_cluster(kLimited);
    std::mt19937 random(*rc::gen::arbitrary<unsigned>());
    make_absurd(snapshot, random);
    for (int round = 0; round < 3; ++round) {
      const Plan plan = decide(snapshot, {});
      RC_ASSERT(broken_rules(snapshot, plan) == std::vector<std::string>{});
      snapshot = applied(snapshot, plan);
      snapshot.taken_at_seconds += 30;
      for (Job& job : snapshot.jobs)
        if (job.observation.measurement) job.observation.measurement->window_end_seconds += 30;
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
