// Fluent builders for snapshots, and the effect of a plan on them.
//
//   const Job job = MakeJob("vision").max(8).measures(fluid.steady(0)).obj();
//   const ClusterSnapshot snapshot = MakeSnapshot().node("n1", 8000).job(job).obj();
#pragma once

#include <string>
#include <utility>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/fluid.h"

namespace sluice::scheduler::testing {

constexpr double kNowSeconds = 1'000'000;
inline const Config kConfig;  // as the chart has it

// Starved by its own core: it could take eight times the samples.
inline const FluidJob kHungry{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

// The measurement a job shows `count` windows later.
inline Measurement later(Measurement m, int count = 1) {
  m.window_end_seconds += count * m.window_seconds;
  return m;
}

// Its training loops say how many samples they will still take: so many seconds of them at the demand that it measures.
inline void remains(double seconds, Job& job) {
  const Measurement& m = *job.observation.measurement;
  job.remaining_samples = seconds * m.samples_per_second / m.compute_share;
}

// A running one-rank job in mode Auto with room for 100 workers of one core, one feeder core, and no metrics yet.
class MakeJob {
 public:
  explicit MakeJob(const std::string& name) {
    job_.id = {"default", name};
    job_.running = true;
    job_.max_workers = 100;
    job_.hosts = {{.request_millicores = 1000, .limit_millicores = 1000}};
    job_.observation.missing_reason = "no metrics";
  }

  MakeJob& not_running() { return job_.running = false, *this; }
  MakeJob& gpus(int count) { return job_.gpus = count, *this; }
  MakeJob& weight(int weight) { return job_.weight = weight, *this; }
  MakeJob& priority(int priority) { return job_.priority = priority, *this; }
  // REQUIRES: it measures something, and has no memory of anything else
  MakeJob& remaining_hours(double hours) { return remains(hours * 3600, job_), *this; }
  MakeJob& mode(Mode mode) { return job_.mode = mode, *this; }
  MakeJob& placement(Placement placement) { return job_.placement = placement, *this; }
  MakeJob& min(int workers) { return job_.min_workers = workers, *this; }
  MakeJob& max(int workers) { return job_.max_workers = workers, *this; }
  MakeJob& let_through(int workers) { return job_.held_at_gate = true, max(workers); }  // by a scheduling gate
  MakeJob& worker_millicores(std::int64_t millicores) { return job_.worker_millicores = millicores, *this; }
  // Of feeders on a node that is not part of the snapshot; the plan cannot change it.
  MakeJob& local_millicores(std::int64_t millicores) {
    job_.hosts = {
        {.ranks = job_.ranks, .gpus = job_.gpus, .request_millicores = millicores, .limit_millicores = millicores}};
    return *this;
  }
  MakeJob& memory(EstimatorMemory memory) { return job_.memory = std::move(memory), *this; }

  // `count` ready workers on a node (old enough to have been there during any window), counted into the allocation.
  MakeJob& holds(int count, const std::string& node) {
    for (int i = 0; i < count; ++i) add_worker({"", node, true, kNowSeconds - 1000, kNowSeconds - 990, false});
    job_.allocated_workers += count;
    return *this;
  }

  // Its data, in the cache of that node.
  MakeJob& kept(const std::string& node, double bytes) {
    job_.kept.push_back({node, bytes});
    return *this;
  }

  // One more worker exactly as given, not counted into the allocation.
  MakeJob& worker(Worker worker) { return add_worker(std::move(worker)), *this; }
  MakeJob& allocated(int workers) { return job_.allocated_workers = workers, *this; }

  MakeJob& measures(Measurement measurement) {
    job_.observation = {std::move(measurement), ""};
    return *this;
  }
  // As fluid.steady() shows with the workers held so far.
  MakeJob& measures(const FluidJob& fluid) {
    const double cores = static_cast<double>(job_.allocated_workers * job_.worker_millicores) / 1000;
    return local_millicores(static_cast<std::int64_t>(fluid.local_cores * 1000))
        .measures(fluid.steady(cores, kNowSeconds));
  }
  MakeJob& misses(const std::string& reason) {
    job_.observation = {std::nullopt, reason};
    return *this;
  }

  MakeJob& unmeasured_for(double seconds) {
    if (!job_.memory) job_.memory = EstimatorMemory{};
    job_.memory->unmeasured_since_seconds = kNowSeconds - seconds;
    return *this;
  }

  const Job& obj() const { return job_; }

 private:
  void add_worker(Worker worker) {
    if (worker.name.empty()) worker.name = job_.id.name + "-worker-" + std::to_string(job_.workers.size());
    job_.workers.push_back(std::move(worker));
  }

  Job job_;
};

class MakeSnapshot {
 public:
  MakeSnapshot() { snapshot_.taken_at_seconds = kNowSeconds; }

  MakeSnapshot& node(const std::string& name, std::int64_t allocatable, std::int64_t by_others = 0,
                     bool schedulable = true) {
    snapshot_.nodes.push_back({name, allocatable, by_others, schedulable});
    return *this;
  }
  MakeSnapshot& job(const MakeJob& job) {
    snapshot_.jobs.push_back(job.obj());
    return *this;
  }
  const ClusterSnapshot& obj() const { return snapshot_; }

 private:
  ClusterSnapshot snapshot_;
};

// REQUIRES: the job is in the plan
const JobPlan& plan_of(const Plan& plan, const std::string& name);

// The snapshot once the plan has been carried out and every new worker is ready, with the same measurements.
ClusterSnapshot applied(ClusterSnapshot snapshot, const Plan& plan);

}  // namespace sluice::scheduler::testing
