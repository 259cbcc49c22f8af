// What must make no difference: the same cluster told in another way gets the same plan.
#include "scheduler/decide.h"
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
      if (job.waiting) shift(job.waiting->since_seconds);
      if (!job.memory) continue;
      shift(job.memory->folded_through_seconds);
      shift(job.memory->corrected_at_seconds);
      shift(job.memory->useless_since_seconds);
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
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("limits that are far away are as good as none") {
  property("far away", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.quotas = shape.budget = shape.memory = shape.networks = false;
    ClusterSnapshot snapshot = lived_in(seed, shape);
    const std::string want = text_of(decide(snapshot, some_config(seed)));
    snapshot.budget_per_hour = 1e9;
    snapshot.quotas = {{"huge", std::int64_t{1} << 50, 1 << 20}};
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

TEST_CASE("what a job in mode Off holds is to the others as if somebody else requested it") {
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
    // It is still there, as one that has finished: pieces depend on the number of jobs.
    without.jobs[seed % without.jobs.size()] = MakeJob(off.id.name).not_running().obj();
    for (Node& node : without.nodes)
      for (const Worker& worker : off.workers)
        if (worker.node == node.name) node.requested_by_others_millicores += off.worker_millicores;
    const Plan plan = decide(snapshot, movable(seed));
    for (const JobPlan& want : decide(without, movable(seed)).jobs) {
      const JobPlan& its = plan_of(plan, want.id.name);
      if (want.id == off.id) continue;
      RC_ASSERT(its.workers == want.workers);
      RC_ASSERT(its.local == want.local);
      RC_ASSERT(its.explanation == want.explanation);
    }
  });
}

TEST_CASE("a job that is alone is advised what it would get") {
  property("advice", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.missing_metrics = shape.waiting_jobs = false;
    ClusterSnapshot snapshot = lived_in(seed, shape);
    if (snapshot.jobs.empty()) return;
    Job job = snapshot.jobs[seed % snapshot.jobs.size()];
    job.local_adjustable = false;
    if (!job.running) return;
    snapshot.jobs = {job};
    snapshot.jobs[0].mode = Mode::kRecommend;
    const JobPlan advised = decide(snapshot, movable(seed)).jobs[0];
    snapshot.jobs[0].mode = Mode::kAuto;
    const JobPlan done = decide(snapshot, movable(seed)).jobs[0];
    RC_ASSERT(advised.recommended == done.workers);
    RC_ASSERT(to_string(advised.reason) == to_string(done.reason));
    RC_ASSERT(advised.estimate.planned_supply_ratio == done.estimate.planned_supply_ratio);
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
