// What must make no difference: the same cluster told in another way gets the same plan.
#include <algorithm>
#include <sstream>
#include <utility>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

// After two decisions, so that there are memories and workers of all ages.
ClusterSnapshot lived_in(unsigned seed, const ClusterShape& shape) {
  ClusterSnapshot snapshot = random_cluster(seed, shape);
  for (int round = 0; round < 2; ++round) {
    snapshot = applied(snapshot, decide(snapshot, some_config(seed)));
    snapshot.taken_at_seconds += 30;
    for (Job& job : snapshot.jobs)
      if (job.observation.measurement) job.observation.measurement->window_end_seconds += 30;
  }
  return snapshot;
}

TEST_CASE("no clock: everything a million seconds later gets the same plan") {
  property("later", [](unsigned seed) {
    ClusterSnapshot snapshot = lived_in(seed, everything());
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    const auto shift = [](double& seconds) { seconds += seconds == 0 ? 0 : 1'000'000; };  // 0: it never happened
    shift(snapshot.taken_at_seconds);
    for (Job& job : snapshot.jobs) {
      for (Worker& worker : job.workers) shift(worker.created_at_seconds), shift(worker.ready_since_seconds);
      if (job.observation.measurement) shift(job.observation.measurement->window_end_seconds);
      if (!job.memory) continue;
      shift(job.memory->folded_through_seconds);
      shift(job.memory->steady.through_seconds);
      shift(job.memory->useless_since_seconds);
      shift(job.memory->interference.through_seconds);
      shift(job.memory->neighbours.through_seconds);
      if (job.memory->unmeasured_since_seconds) shift(*job.memory->unmeasured_since_seconds);
    }
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("another currency: prices and the budget four times as high get the same plan") {
  property("currency", [](unsigned seed) {
    ClusterSnapshot snapshot = lived_in(seed, everything());
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    for (Node& node : snapshot.nodes) node.price_per_hour *= 4;
    if (snapshot.budget_per_hour) *snapshot.budget_per_hour *= 4;
    for (Quota& quota : snapshot.quotas)
      if (quota.budget_per_hour) *quota.budget_per_hour *= 4;
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("limits that are far away are as good as none") {
  property("far away", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.quotas = shape.budget = shape.memory = shape.networks = false;
    ClusterSnapshot snapshot = lived_in(seed, shape);
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    snapshot.budget_per_hour = 1e300;
    snapshot.quotas = {{"huge", std::int64_t{1} << 50}};
    for (Job& job : snapshot.jobs) {
      job.quota = "huge";
      job.worker_memory_bytes = 1 << 30;
      job.bytes_per_sample = 100;
    }
    for (Node& node : snapshot.nodes) {
      node.free_memory_bytes = std::int64_t{1} << 60;
      node.network_bytes_per_second = 1e18;
    }
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("workers of a job in mode Off bind other jobs like any other pods") {
  property("mode Off", [](unsigned seed) {
    ClusterShape shape{.priorities = true, .gangs = true, .fixed_feeders = true, .minima = true};
    ClusterSnapshot snapshot = lived_in(seed, shape);
    if (snapshot.jobs.size() < 2) return;
    Job& off = snapshot.jobs[seed % snapshot.jobs.size()];
    // On a host with GPUs they leave the feeders less to share, which is not said here.
    for (const Worker& worker : off.workers)
      if (!worker.node.empty() && node_of(snapshot, worker.node).gpus > 0) return;
    off.mode = Mode::kOff;
    off.local_adjustable = false;
    ClusterSnapshot without = snapshot;
    std::erase_if(without.jobs, [&](const Job& job) { return job.id == off.id; });
    for (Node& node : without.nodes)
      for (const Worker& worker : off.workers)
        if (worker.node == node.name) node.requested_by_others_millicores += off.worker_millicores;
    const Plan plan = decide(snapshot, some_config(seed));
    for (const JobPlan& want : decide(without, some_config(seed)).jobs) {
      const JobPlan& its = plan_of(plan, want.id.name);
      RC_ASSERT(its.workers == want.workers);
      RC_ASSERT(its.local == want.local);
      RC_ASSERT(its.explanation == want.explanation);
    }
  });
}

TEST_CASE("a job that is alone is advised what it would get") {
  property("advice", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.missing_metrics = false;
    ClusterSnapshot snapshot = lived_in(seed, shape);
    if (snapshot.jobs.empty()) return;
    Job job = snapshot.jobs[seed % snapshot.jobs.size()];
    job.local_adjustable = false;
    if (!job.running) return;
    snapshot.jobs = {job};
    snapshot.jobs[0].mode = Mode::kRecommend;
    const JobPlan advised = decide(snapshot, some_config(seed)).jobs[0];
    snapshot.jobs[0].mode = Mode::kAuto;
    const JobPlan done = decide(snapshot, some_config(seed)).jobs[0];
    RC_ASSERT(advised.recommended == done.workers);
    RC_ASSERT(to_string(advised.reason) == to_string(done.reason));
    RC_ASSERT(advised.planned_supply_ratio == done.planned_supply_ratio);
  });
}

// What each job gets, and the feeders' CPU, without names of workers and nodes.
std::string sums_of(const Plan& plan) {
  std::ostringstream out;
  for (const JobPlan& job : plan.jobs) {
    out << job.id.name << ' ' << job.workers << ' ' << job.recommended << ' ' << to_string(job.reason);
    for (const LocalCpu& local : job.local) out << ' ' << local.node << ':' << local.request_millicores;
    out << '\n';
  }
  return out.str();
}

// Half of the node's cores, and its workers from there on, are another node's.
void split(ClusterSnapshot& snapshot, std::size_t index) {
  Node& node = snapshot.nodes[index];
  Node half = node;
  half.name += "-b";
  half.allocatable_millicores = node.allocatable_millicores / 2000 * 1000;
  node.allocatable_millicores -= half.allocatable_millicores;
  const double all = static_cast<double>(node.allocatable_millicores + half.allocatable_millicores);
  half.price_per_hour *= static_cast<double>(half.allocatable_millicores) / all;
  node.price_per_hour *= static_cast<double>(node.allocatable_millicores) / all;
  std::int64_t left = node.allocatable_millicores;
  for (Job& job : snapshot.jobs)
    for (Worker& worker : job.workers)
      if (worker.node == node.name && (left -= job.worker_millicores) < 0) worker.node = half.name;
  snapshot.nodes.push_back(half);
}

TEST_CASE("cores are cores: a node that is split in two gives every job as much as before") {
  property("split", [](unsigned seed) {
    const ClusterShape shape{.priorities = true, .quotas = true, .gangs = true, .fixed_feeders = true, .minima = true};
    ClusterSnapshot snapshot = lived_in(seed, shape);
    std::vector<std::size_t> cpu_nodes;
    for (std::size_t i = 0; i < snapshot.nodes.size(); ++i)
      if (snapshot.nodes[i].gpus == 0) cpu_nodes.push_back(i);
    RC_PRE(!cpu_nodes.empty());
    const std::string want = sums_of(decide(snapshot, some_config(seed)));
    split(snapshot, cpu_nodes[seed % cpu_nodes.size()]);
    RC_ASSERT(sums_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("nodes on which nothing can be put make no difference") {
  property("useless nodes", [](unsigned seed) {
    ClusterSnapshot snapshot = lived_in(seed, everything());
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    // All of them cost nothing: the budget is not divided at their price either.
    snapshot.nodes.push_back({.name = "a-cordoned", .allocatable_millicores = 64'000, .schedulable = false});
    snapshot.nodes.push_back(
        {.name = "b-full", .allocatable_millicores = 64'000, .requested_by_others_millicores = 64'000, .gpus = 8});
    snapshot.nodes.push_back(
        {.name = "c-over-full", .allocatable_millicores = 8000, .requested_by_others_millicores = 16'000});
    snapshot.nodes.push_back({.name = "d-without-cpu", .gpus = 8});
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("jobs that want nothing make no difference") {
  property("useless jobs", [](unsigned seed) {
    ClusterSnapshot snapshot = lived_in(seed, everything());
    RC_PRE(!snapshot.jobs.empty());
    const Plan before = decide(snapshot, some_config(seed));
    const FluidJob text{.demand = 100, .local_cores = 1};
    for (const MakeJob& job : {MakeJob("finished").not_running(), MakeJob("on-its-host").placement(Placement::kLocal),
                               MakeJob("left-alone").mode(Mode::kOff), MakeJob("fed").measures(text),
                               MakeJob("advised").mode(Mode::kRecommend).measures(text)})
      for (const int priority : {-1, 0, 1}) {
        snapshot.jobs.push_back(MakeJob(job).priority(priority).obj());
        snapshot.jobs.back().id.name += std::to_string(priority);
        const bool may_ask = job.obj().observation.measurement.has_value();  // then not smaller than what others have
        snapshot.jobs.back().worker_millicores = may_ask ? 3000 : 50;
        snapshot.jobs.back().closed_groups = {true, true, true};  // it opens no nodes that were closed to the others
      }
    Plan after = decide(snapshot, some_config(seed));
    std::erase_if(after.jobs, [&](const JobPlan& job) {
      return std::none_of(before.jobs.begin(), before.jobs.end(), [&](const JobPlan& was) { return was.id == job.id; });
    });
    RC_ASSERT(text_of(after) == text_of(before));
  });
}

TEST_CASE("a crowd of finished jobs makes no difference, whatever size their workers had") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const ClusterShape shape{
        .priorities = true, .gangs = true, .fixed_feeders = true, .worker_sizes = seed % 2 == 0, .minima = true};
    const ClusterSnapshot before = random_cluster(seed, shape);
    const Plan want = decide(before, some_config(seed));
    for (const std::int64_t millicores : {70, 5000}) {
      CAPTURE(millicores);
      ClusterSnapshot crowded = before;
      for (int i = 0; i < 50; ++i)
        crowded.jobs.push_back(
            MakeJob("z" + std::to_string(i)).not_running().worker_millicores(millicores).measures(FluidJob{}).obj());
      Plan plan = decide(crowded, some_config(seed));
      plan.jobs.resize(want.jobs.size());  // theirs are the last names
      CHECK(text_of(plan) == text_of(want));
    }
  }
}

TEST_CASE("of priorities only the order counts, and of weights only the ratio") {
  property("ranks", [](unsigned seed) {
    ClusterSnapshot snapshot = lived_in(seed, everything());
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    for (Job& job : snapshot.jobs) {
      job.priority = 1000 * job.priority + 7;
      job.weight *= 4;
    }
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("names are names: other ones in the same order get the same plan") {
  property("names", [](unsigned seed) {
    const ClusterShape shape = everything();
    ClusterSnapshot snapshot = lived_in(seed, shape);
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    for (Job& job : snapshot.jobs) {
      job.id.name = "x" + job.id.name;
      for (Worker& worker : job.workers) worker.name = "x" + worker.name;
      for (Worker& worker : job.workers) worker.node = worker.node.empty() ? "" : "x" + worker.node;
      for (TrainerHost& host : job.hosts) host.node = "x" + host.node;
    }
    for (Node& node : snapshot.nodes) node.name = "x" + node.name;
    Plan plan = decide(snapshot, some_config(seed));
    const auto strip = [](std::string& name) { name.erase(0, 1); };
    for (JobPlan& job : plan.jobs) {
      strip(job.id.name);
      for (std::vector<std::string>* names : {&job.victims, &job.new_worker_nodes})
        std::for_each(names->begin(), names->end(), strip);
      for (LocalCpu& local : job.local) strip(local.node);
      // "Starts now on xgpu0, xgpu1."
      for (auto at = job.explanation.find("xgpu"); at != std::string::npos; at = job.explanation.find("xgpu"))
        job.explanation.erase(at, 1);
    }
    RC_ASSERT(text_of(plan) == want);
  });
}

TEST_CASE("a plan without sentences is otherwise the same plan") {
  property("words", [](unsigned seed) {
    const ClusterSnapshot snapshot = lived_in(seed, everything());
    Config config = some_config(seed);
    Plan want = decide(snapshot, config);
    for (JobPlan& job : want.jobs) {
      job.evidence.clear();
      job.explanation.clear();
    }
    config.in_words = false;
    RC_ASSERT(text_of(decide(snapshot, config)) == text_of(want));
  });
}

// The plan sets no feeder's CPU.
ClusterSnapshot with_fixed_feeders(ClusterSnapshot snapshot) {
  for (Job& job : snapshot.jobs) {
    if (!std::exchange(job.local_adjustable, false)) continue;
    for (TrainerHost& host : job.hosts)
      for (Node& node : snapshot.nodes)
        if (node.name == host.node) node.requested_by_others_millicores += host.request_millicores;
  }
  return snapshot;
}

TEST_CASE("a core is a unit: half as fast, twice as many, workers twice as large get the same plan") {
  property("half cores", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.budget = false;
    ClusterSnapshot snapshot = with_fixed_feeders(lived_in(seed, shape));
    for (Job& job : snapshot.jobs) job.memory.reset();
    Config config = some_config(seed);
    if (config.objective == Objective::kCost) config.objective = Objective::kBalanced;  // it knows what a core costs
    const Plan want = decide(snapshot, config);
    for (Node& node : snapshot.nodes) {
      node.allocatable_millicores *= 2;
      node.requested_by_others_millicores *= 2;
    }
    for (Quota& quota : snapshot.quotas)
      if (quota.worker_millicores) *quota.worker_millicores *= 2;
    for (Job& job : snapshot.jobs) {
      job.worker_millicores *= 2;
      for (TrainerHost& host : job.hosts) host.request_millicores *= 2, host.limit_millicores *= 2;
      if (!job.observation.measurement) continue;
      Measurement& m = *job.observation.measurement;
      if (m.local) m.local->busy_cores *= 2;
      if (m.remote) m.remote->busy_cores *= 2;
    }
    const Plan plan = decide(snapshot, config);
    for (std::size_t i = 0; i < want.jobs.size(); ++i) {
      RC_ASSERT(plan.jobs[i].workers == want.jobs[i].workers);
      RC_ASSERT(plan.jobs[i].recommended == want.jobs[i].recommended);
      RC_ASSERT(to_string(plan.jobs[i].reason) == to_string(want.jobs[i].reason));
      RC_ASSERT(plan.jobs[i].victims == want.jobs[i].victims);
      RC_ASSERT(plan.jobs[i].new_worker_nodes == want.jobs[i].new_worker_nodes);
      RC_ASSERT(plan.jobs[i].planned_supply_ratio == Approx(want.jobs[i].planned_supply_ratio));
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
