#include "scheduler/simulator/world/exporter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scheduler/simulator/world/random.h"
#include "scheduler/simulator/world/supply.h"

namespace sluice::simulator {
namespace {

using scheduler::Measurement;
using scheduler::Observation;
using scheduler::PrefetchQueue;
using scheduler::SourceRate;

Counters between(const Counters& a, const Counters& b, double at_seconds) {
  const double span = b.at_seconds - a.at_seconds;
  const double part = span <= 0 ? 1 : (at_seconds - a.at_seconds) / span;
  const auto mix = [&](double from, double to) { return from + part * (to - from); };
  Counters mixed;
  mixed.at_seconds = at_seconds;
  mixed.samples = mix(a.samples, b.samples);
  mixed.batches = mix(a.batches, b.batches);
  mixed.compute_seconds = mix(a.compute_seconds, b.compute_seconds);
  mixed.wait_seconds = mix(a.wait_seconds, b.wait_seconds);
  mixed.local_samples = mix(a.local_samples, b.local_samples);
  mixed.local_busy_core_seconds = mix(a.local_busy_core_seconds, b.local_busy_core_seconds);
  mixed.remote_samples = mix(a.remote_samples, b.remote_samples);
  mixed.remote_busy_core_seconds = mix(a.remote_busy_core_seconds, b.remote_busy_core_seconds);
  mixed.blocked_thread_seconds = mix(a.blocked_thread_seconds, b.blocked_thread_seconds);
  mixed.read_bytes = mix(a.read_bytes, b.read_bytes);
  mixed.queue_share = a.queue_share;
  return mixed;
}

// The counters as they were. REQUIRES: start_seconds <= at_seconds <= updated_seconds
Counters counters_at(const JobState& job, double at_seconds) {
  // From the end: windows are short, and the longest possible one is long.
  auto later = job.history.end();
  while (std::prev(later)->at_seconds > at_seconds) --later;
  return between(*std::prev(later), later == job.history.end() ? job.counters : *later, at_seconds);
}

constexpr const char* kStorageName = "storage";

// Independent figures of one measurement; the enumerators number the noise.
enum Counter : std::uint64_t { kSamples, kCompute, kLocalBusy, kRemoteBusy, kCounters };

double noise(double end_seconds, Draw purpose, std::uint64_t object, std::uint64_t seed, const Physics& physics) {
  if (physics.metrics_noise <= 0) return 1;
  const auto count = static_cast<std::uint64_t>(std::llround(end_seconds * 1000));
  return std::exp(physics.metrics_noise * normal({seed, purpose, object, count}));
}

// The factor of the busy CPU of this job's executors, as metrics show it.
double busy_cpu_factor(const JobState& job, std::uint64_t seed, const Physics& physics) {
  if (physics.busy_cpu_error <= 0) return 1;
  return std::exp(physics.busy_cpu_error *
                  normal({seed, Draw::kBusyCpuError, static_cast<std::uint64_t>(job.index), 0}));
}

// Where the storage has no limit, nothing counts what is read from it.
std::optional<double> read_bytes_per_sample(double bytes, double samples, const Physics& physics) {
  if (physics.storage_gbps <= 0 || samples <= 0) return std::nullopt;
  return bytes / samples;
}

// The truth of this moment, for the oracle.
Measurement perfect(const JobState& job, double now_seconds, const Physics& physics) {
  const Counters& each = job.rates.per_second;
  const double per_core = job.spec->gpus * kSamplesPerSecondPerGpu / job.knee_cores;
  Measurement m;
  m.window_end_seconds = now_seconds;
  m.window_seconds = 60;
  m.samples_per_second = each.samples;
  m.compute_share = each.compute_seconds;
  m.wait_share = each.wait_seconds;
  m.batches_in_window = 1e6;
  m.local = SourceRate{each.local_samples, each.local_busy_core_seconds};
  // Its rate is known although no remote worker has worked yet.
  m.remote = each.remote_samples > 0 ? SourceRate{each.remote_samples, each.remote_busy_core_seconds}
                                     : SourceRate{per_core * physics.remote_efficiency * 1e-3, 1e-3};
  m.blocked_threads = each.blocked_thread_seconds;
  m.read_bytes_per_sample = read_bytes_per_sample(each.read_bytes, each.samples, physics);
  return m;
}

// The counters at the beginning of the shortest window that ends at `end` and holds what an estimate needs.
Counters window_begin(const JobState& job, const Counters& end, const Physics& physics) {
  const double first = std::max(job.start_seconds, end.at_seconds - physics.metrics_window_most_seconds);
  Counters begin = counters_at(job, std::max(first, end.at_seconds - physics.metrics_window_seconds));
  while (begin.at_seconds > first && end.batches - begin.batches < physics.metrics_window_batches)
    begin = counters_at(job, std::max(first, end.at_seconds - 1.5 * (end.at_seconds - begin.at_seconds)));
  return begin;
}

std::string job_name(int index) {
  char name[32];
  std::snprintf(name, sizeof name, "job-%06d", index);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return name;
}

// A job like one that ran before begins as the operator lets it begin (operator/decide/learnt_jobs.h): by the knee and
// the rates of the other, and with its workers, which count as held.
void begin_as_learnt(const LearntJob& learnt, const Physics& physics, scheduler::Job& job) {
  if (job.memory && job.memory->was_measured) return;
  if (!job.memory || !job.memory->knee_cores) {
    const double knee_cores = learnt.knee_cores_per_gpu * job.gpus;
    scheduler::EstimatorMemory memory;
    memory.demand_samples_per_second = kSamplesPerSecondPerGpu * job.gpus;
    memory.knee_cores = scheduler::Tracked::starting_at(knee_cores);
    const double rate_per_core = memory.demand_samples_per_second / knee_cores;
    memory.local_rate_per_core = scheduler::Tracked::starting_at(rate_per_core);
    memory.remote_rate_per_core = scheduler::Tracked::starting_at(rate_per_core * physics.remote_efficiency);
    job.memory = memory;
  }
  if (job.running && job.allocated_workers == 0) job.allocated_workers = std::min(learnt.workers, job.max_workers);
}

}  // namespace

void record_history(JobState& job, const Physics& physics) {
  const double needed = job.updated_seconds - physics.metrics_age_seconds - physics.metrics_window_most_seconds;
  while (job.history.size() > 1 && job.history[1].at_seconds < needed) job.history.pop_front();
  if (!job.history.empty() && job.history.back().at_seconds == job.updated_seconds) job.history.pop_back();
  job.counters.at_seconds = job.updated_seconds;
  job.counters.queue_share = job.rates.queue_share;
  job.history.push_back(job.counters);
}

Observation observe(const JobState& job, double now_seconds, std::uint64_t seed, const Physics& physics) {
  if (physics.perfect_information) return {perfect(job, now_seconds, physics), ""};
  const double end = now_seconds - physics.metrics_age_seconds;
  if (end <= job.start_seconds) return {std::nullopt, "no metrics yet"};
  const Counters b = counters_at(job, end);
  const Counters a = window_begin(job, b, physics);
  const double window = end - a.at_seconds;
  const auto number = static_cast<std::uint64_t>(job.index);
  const auto noisy = [&](Counter counter) {
    return noise(end, Draw::kNoise, number * kCounters + counter, seed, physics);
  };
  const double factor = busy_cpu_factor(job, seed, physics);
  const auto source = [&](double samples, double busy, Counter counter) -> std::optional<SourceRate> {
    if (busy <= 0) return std::nullopt;
    return SourceRate{samples / window, busy / window * factor * noisy(counter)};
  };
  Measurement m;
  m.window_end_seconds = end;
  m.window_seconds = window;
  m.samples_per_second = (b.samples - a.samples) / window * noisy(kSamples);
  m.compute_share = (b.compute_seconds - a.compute_seconds) / window * noisy(kCompute);
  m.wait_share = (b.wait_seconds - a.wait_seconds) / window;
  m.batches_in_window = b.batches - a.batches;
  m.local =
      source(b.local_samples - a.local_samples, b.local_busy_core_seconds - a.local_busy_core_seconds, kLocalBusy);
  m.remote =
      source(b.remote_samples - a.remote_samples, b.remote_busy_core_seconds - a.remote_busy_core_seconds, kRemoteBusy);
  m.blocked_threads = (b.blocked_thread_seconds - a.blocked_thread_seconds) / window;
  m.read_bytes_per_sample = read_bytes_per_sample(b.read_bytes - a.read_bytes, b.samples - a.samples, physics);
  if (m.read_bytes_per_sample) *m.read_bytes_per_sample *= noise(end, Draw::kReadNoise, number, seed, physics);
  const double capacity = 16 * job.spec->gpus;
  m.queue = PrefetchQueue{capacity * b.queue_share, capacity};
  return {m, ""};
}

// As it is before its trainer starts, and again after its node has failed.
scheduler::Job Snapshots::waiting_job(const View& view, JobState& state) const {
  scheduler::Job job;
  job.id = {"simulation", job_name(state.index)};
  job.gpus = state.spec->gpus;
  job.weight = state.spec->weight;
  job.priority = state.spec->priority;
  job.max_workers = physics_.max_workers_per_job;
  job.worker_millicores = physics_.worker_millicores;
  job.local_adjustable = state.spec->local_cores <= 0;
  if (physics_.storage_gbps > 0) job.storage = kStorageName;
  if (state.spec->network_gbps_per_gpu > 0)
    job.bytes_per_sample = state.spec->network_gbps_per_gpu * 1e9 / 8 / kSamplesPerSecondPerGpu;
  // A gang larger than any node is as few ranks as fit on nodes.
  int most = 1;
  for (const NodeState& node : view.nodes) most = std::max(most, node.gpus);
  job.ranks = (job.gpus + most - 1) / most;
  state.hosts_changed = state.workers_changed = true;
  return job;
}

void Snapshots::fill_job(const View& view, JobState& state, scheduler::Job& job) const {
  const bool running = state.phase == Phase::kRunning;
  if (job.running && !running) job = waiting_job(view, state);
  job.running = running;
  job.allocated_workers = state.allocated_workers;
  job.memory = state.memory;
  if (state.spec->learnt) begin_as_learnt(*state.spec->learnt, physics_, job);
  if (!running) return;
  if (state.hosts_changed) {
    job.hosts.clear();
    for (const HostState& host : state.hosts) job.hosts.push_back({view.nodes[host.node].name, 1, host.gpus, 0, 0});
    job.ranks = static_cast<int>(state.hosts.size());
    state.hosts_changed = false;
  }
  for (std::size_t i = 0; i < state.hosts.size(); ++i) {
    job.hosts[i].request_millicores = state.hosts[i].request_millicores;
    job.hosts[i].limit_millicores = state.hosts[i].limit_millicores;
  }
  if (state.workers_changed) {
    job.workers.clear();
    for (const WorkerState& worker : state.workers) {
      const bool ready = worker.node >= 0 && worker.ready_seconds <= view.now_seconds;
      job.workers.push_back({worker.name, worker.node < 0 ? std::string() : view.nodes[worker.node].name, ready,
                             worker.created_seconds, ready ? worker.ready_seconds : 0, worker.gone_seconds >= 0});
    }
    state.workers_changed = false;
  }
  if (physics_.remaining_time_known)
    job.remaining_samples = (state.spec->ideal_seconds - state.done_seconds) * job.gpus * kSamplesPerSecondPerGpu;
  job.observation = view.metrics_lost && !physics_.perfect_information
                        ? Observation{std::nullopt, "the metrics are away"}
                        : observe(state, view.now_seconds, view.seed, physics_);
}

const scheduler::ClusterSnapshot& Snapshots::take(const View& view) {
  snapshot_.taken_at_seconds = view.now_seconds;
  if (physics_.storage_gbps > 0) snapshot_.storages = {{kStorageName, physics_.storage_gbps * 1e9 / 8}};
  snapshot_.nodes.resize(view.nodes.size());
  for (std::size_t i = 0; i < view.nodes.size(); ++i) {
    const NodeState& state = view.nodes[i];
    scheduler::Node& node = snapshot_.nodes[i];
    if (node.name.empty()) node.name = state.name;
    node.allocatable_millicores = state.capacity_millicores;
    node.schedulable = state.up && !state.cordoned;
    node.gpus = state.gpus;
    if (state.network_gbps > 0) node.network_bytes_per_second = state.network_gbps * 1e9 / 8;
    const bool cores_are_paid = physics_.gpu_price_includes_host && state.gpus > 0;
    node.price_per_hour =
        physics_.gpu_price_per_hour * state.gpus +
        (cores_are_paid ? 0 : physics_.core_price_per_hour * static_cast<double>(state.capacity_millicores) / 1000);
    node.spot = state.spot;
  }
  if (slots_ != view.active) {
    // Jobs came or went: entries of those that stay move to their new places.
    std::vector<scheduler::Job> jobs(view.active.size());
    for (std::size_t old = 0, at = 0; at < view.active.size(); ++at) {
      while (old < slots_.size() && slots_[old] < view.active[at]) ++old;
      if (old < slots_.size() && slots_[old] == view.active[at]) {
        jobs[at] = std::move(snapshot_.jobs[old]);
        continue;
      }
      jobs[at] = waiting_job(view, view.jobs[view.active[at]]);
    }
    snapshot_.jobs = std::move(jobs);
    slots_ = view.active;
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) fill_job(view, view.jobs[slots_[i]], snapshot_.jobs[i]);
  return snapshot_;
}

}  // namespace sluice::simulator
