#include "scheduler/testing/fluid.h"

#include <algorithm>
#include <cmath>

#include "scheduler/testing/builders.h"

namespace sluice::scheduler::testing {

double FluidJob::supply(double remote_cores) const {
  return local_rate * local_cores + remote_rate * remote_cores * (1 - remote_overhead);
}

double FluidJob::throughput(double remote_cores) const {
  const double x = supply(remote_cores) / demand;
  return x <= 0 ? 0 : demand * std::pow(1 + std::pow(x, -q), -1 / q);
}

namespace {

// Full where the trainer hardly waits, else empty.
PrefetchQueue queue_at(double wait_share) {
  constexpr double kCapacity = 16;
  return {wait_share < 0.05 ? kCapacity : 0, kCapacity};
}

}  // namespace

Measurement FluidJob::steady(double remote_cores, double window_end_seconds, double window_seconds) const {
  const double rate = throughput(remote_cores);
  const double busy = rate > 0 ? rate / supply(remote_cores) : 0;
  const double remote_busy_cores = remote_cores * (1 - remote_overhead) * busy;
  Measurement m;
  m.window_end_seconds = window_end_seconds;
  m.window_seconds = window_seconds;
  m.samples_per_second = rate;
  m.compute_share = rate / demand;
  m.wait_share = 1 - rate / demand;
  m.batches_in_window = rate * window_seconds / batch_size;
  m.local = SourceRate{local_rate * local_cores * busy, local_cores * busy};
  if (remote_cores > 0) m.remote = SourceRate{remote_rate * remote_busy_cores, remote_busy_cores};
  m.queue = queue_at(m.wait_share);
  return m;
}

void FluidLoop::add(Job job, FluidJob physics) {
  runs_[job.id.name] = {physics, {}, 0};
  snapshot_.jobs.push_back(std::move(job));
}

const Job& FluidLoop::job(const std::string& name) const {
  return *std::find_if(snapshot_.jobs.begin(), snapshot_.jobs.end(),
                       [&](const Job& job) { return job.id.name == name; });
}

double FluidLoop::speed(const std::string& name) const {
  return runs_.at(name).physics.full_speed_fraction(ready_cores(job(name)));
}

double FluidLoop::ready_cores(const Job& job) const {
  const auto ready = [&](const Worker& worker) {
    return !worker.node.empty() && worker.created_at_seconds + timing_.startup_seconds <= now_seconds_;
  };
  return static_cast<double>(std::count_if(job.workers.begin(), job.workers.end(), ready) * job.worker_millicores) /
         1000;
}

void FluidLoop::run(int seconds) {
  for (int i = 0; i < seconds; ++i) {
    step();
    if (now_seconds_ % timing_.decision_seconds == 0) decide_now();
  }
}

void FluidLoop::step() {
  ++now_seconds_;
  for (const Job& job : snapshot_.jobs) {
    Run& run = runs_.at(job.id.name);
    const Measurement rates = run.physics.steady(ready_cores(job), now_seconds_, 1);
    Counters next = run.history.empty() ? Counters{} : run.history.back();
    next.samples += rates.samples_per_second;
    next.compute += rates.compute_share;
    next.wait += rates.wait_share;
    const auto add = [](SourceRate& total, const std::optional<SourceRate>& rate) {
      if (!rate) return;
      total.samples_per_second += rate->samples_per_second;
      total.busy_cores += rate->busy_cores;
    };
    add(next.local, rates.local);
    add(next.remote, rates.remote);
    run.history.push_back(next);
  }
}

Observation FluidLoop::observe(const Run& run) const {
  if (metrics_lost_) return {std::nullopt, "Prometheus is away"};
  const int last = static_cast<int>(run.history.size()) - 1 - timing_.metrics_lag_seconds;
  const int first = last - timing_.window_seconds;
  if (first < 0) return {std::nullopt, "no metrics yet"};
  const Counters& a = run.history[first];
  const Counters& b = run.history[last];
  const double window = timing_.window_seconds;
  const auto rate = [&](const SourceRate& from, const SourceRate& to) {
    return SourceRate{(to.samples_per_second - from.samples_per_second) / window,
                      (to.busy_cores - from.busy_cores) / window};
  };
  Measurement m;
  m.window_end_seconds = now_seconds_ - timing_.metrics_lag_seconds;
  m.window_seconds = window;
  m.samples_per_second = (b.samples - a.samples) / window;
  m.compute_share = (b.compute - a.compute) / window;
  m.wait_share = (b.wait - a.wait) / window;
  m.batches_in_window = (b.samples - a.samples) / run.physics.batch_size;
  m.local = rate(a.local, b.local);
  if (b.remote.busy_cores > 0) m.remote = rate(a.remote, b.remote);
  m.queue = queue_at(m.wait_share);
  return {m, ""};
}

void FluidLoop::decide_now() {
  ++decisions_;
  snapshot_.taken_at_seconds = now_seconds_;
  for (Job& job : snapshot_.jobs) {
    job.observation = observe(runs_.at(job.id.name));
    for (Worker& worker : job.workers) {
      worker.ready = !worker.node.empty() && worker.created_at_seconds + timing_.startup_seconds <= now_seconds_;
      worker.ready_since_seconds = worker.created_at_seconds + timing_.startup_seconds;
    }
  }
  plan_ = decide(snapshot_, config_);
  for (const Job& job : snapshot_.jobs) {
    if (plan_of(plan_, job.id.name).workers != job.allocated_workers) ++runs_.at(job.id.name).changes;
  }
  snapshot_ = applied(std::move(snapshot_), plan_);
}

}  // namespace sluice::scheduler::testing
