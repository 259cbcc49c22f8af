#include "scheduler/simulator/world/engine.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <optional>

#include "scheduler/model/fair_shares.h"
#include "scheduler/simulator/world/run.h"
#include "scheduler/simulator/world/supply.h"

namespace sluice::simulator {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kDoneTolerance = 1e-6;  // seconds of ideal running time

// CPU time of this thread: other users of the machine do not change it.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of training at full speed. A data set that is split as finely as this needs no finer tolerance.
double block_seconds(const JobSpec& job) { return job.ideal_seconds / job.epochs / DataCache::kBlocks; }

// The first multiple of `period` at or after a moment.
double next_multiple(double seconds, double period) { return std::ceil(seconds / period - 1e-9) * period; }

}  // namespace

Result<void> Run::prepare() {
  jobs_.resize(workload_.size());
  timelines_.resize(workload_.size());
  next_wake_.assign(workload_.size(), -1);
  unfinished_ = static_cast<int>(workload_.size());
  period_ = physics_.decision_period_seconds;
  double last_arrival = 0;
  for (const JobSpec& spec : workload_) last_arrival = std::max(last_arrival, spec.arrival_seconds);
  for (std::size_t i = 0; i < workload_.size(); ++i) {
    JobState& job = jobs_[i];
    job.spec = &workload_[i];
    job.last_arrival_seconds = last_arrival;
    job.index = static_cast<int>(i);
    job.knee_cores = job.spec->knee_cores_per_gpu * job.spec->gpus;
    if (cluster_.find_hosts(job.spec->gpus).empty())
      return invalid_argument(job.spec->name + " wants " + std::to_string(job.spec->gpus) +
                              " GPUs, and even the empty cluster has no place for them");
    events_.push({job.spec->arrival_seconds, EventKind::kArrival, job.index});
  }
  for (int node = 0; node < static_cast<int>(cluster_.nodes().size()); ++node) schedule_failure(node, 0);
  for (std::size_t i = 0; i < options_.incidents.size(); ++i) {
    const Incident& incident = options_.incidents[i];
    const auto& nodes = cluster_.nodes();
    if (incident.kind != IncidentKind::kMetricsLost &&
        std::none_of(nodes.begin(), nodes.end(), [&](const NodeState& n) { return n.name == incident.node; }))
      return invalid_argument("an incident names node \"" + incident.node + "\", which the cluster does not have");
    events_.push({incident.at_seconds, EventKind::kIncident, static_cast<int>(i)});
    events_.push({incident.at_seconds + incident.for_seconds, EventKind::kIncidentEnd, static_cast<int>(i)});
  }
  return {};
}

Result<RunRecord> Run::run() {
  const double began = cpu_seconds();
  SLUICE_TRY_VOID(prepare());
  while (unfinished_ > 0 && !events_.empty()) {
    now_ = events_.top().at_seconds;
    if (now_ > options_.most_seconds)
      return Error(ErrorCode::kDeadlineExceeded, std::string(policy_.name()) + ": " + std::to_string(unfinished_) +
                                                     " jobs have not finished after " +
                                                     std::to_string(options_.most_seconds) + " s");
    // 1. Everything that happens at this moment.
    while (!events_.empty() && events_.top().at_seconds <= now_) handle(events_.pop());
    // 2. Trainers that can start.
    if (admission_due_) admit();
    refresh();
    // 3. One decision, if something asks for it, and its effects.
    if (decision_due_ || period_over_) {
      decide();
      refresh();
    }
    for (const NodeState& node : cluster_.nodes())
      if (node.local_millicores + node.worker_millicores > node.capacity_millicores) ++totals_.overcommitted_steps;
  }
  if (unfinished_ > 0)
    return internal_error(std::string(policy_.name()) + ": " + std::to_string(unfinished_) +
                          " jobs have not finished, and nothing will happen any more");
  totals_.cpu_seconds = cpu_seconds() - began;
  return record();
}

void Run::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kArrival:
      jobs_[event.object].phase = Phase::kWaiting;
      waiting_.push_back(event.object);
      activate(event.object);
      request_admission();
      break;
    case EventKind::kMilestone:
      if (jobs_[event.object].version != event.version) return;  // the rates have changed since
      milestone(jobs_[event.object]);
      break;
    case EventKind::kWorkers:
      if (next_wake_[event.object] == event.at_seconds) next_wake_[event.object] = -1;
      jobs_[event.object].dirty = jobs_[event.object].workers_changed = true;
      cluster_.settle_workers(jobs_[event.object], now_);
      // Of a job that runs, refresh() asks for the next one.
      if (jobs_[event.object].phase != Phase::kRunning) wake_for_workers(jobs_[event.object]);
      break;
    case EventKind::kNodeDown: node_down(event.object, event.version); break;
    case EventKind::kNodeUp: node_up(event.object, event.version); break;
    case EventKind::kIncident: incident(options_.incidents[event.object], true); break;
    case EventKind::kIncidentEnd: incident(options_.incidents[event.object], false); break;
    case EventKind::kAdmission: admission_due_ = true; break;
    case EventKind::kDecision:
      if (decision_at_ != event.at_seconds) return;  // superseded
      period_over_ = true;
      break;
  }
  ++totals_.events;
}

// The end of a job, of an epoch, of an evaluation, or of the present cost of a sample.
void Run::milestone(JobState& job) {
  advance(job, now_);
  job.dirty = true;
  if (job.evaluation_ends_seconds >= 0) {
    job.evaluation_ends_seconds = -1;
    return;
  }
  if (job.done_seconds >= job.spec->ideal_seconds - kDoneTolerance) return finish(job);
  if (job.spec->data_set >= 0 && job.done_seconds >= (job.block + 1) * block_seconds(*job.spec) - kDoneTolerance)
    read_block(job, job.block + 1);
  const double epoch = epoch_seconds(*job.spec, physics_);
  if (epoch > 0 && job.done_seconds >= (job.epoch + 1) * epoch - kDoneTolerance) {
    ++job.epoch;
    if (physics_.evaluation_seconds > 0) job.evaluation_ends_seconds = now_ + physics_.evaluation_seconds;
  }
  if (physics_.cost_change > 0 &&
      job.done_seconds >= (job.cost_step + 1) * physics_.cost_change_seconds - kDoneTolerance) {
    set_cost_step(job, job.cost_step + 1);
    if (physics_.perfect_information) decision_due_ = true;  // it has no delay to wait for
  }
}

void Run::read_block(JobState& job, int block) {
  job.block = block;
  job.fetched_share = data_.read(job.index, block);
}

void Run::set_cost_step(JobState& job, int step) {
  job.cost_step = step;
  job.knee_cores =
      job.spec->knee_cores_per_gpu * job.spec->gpus * cost_factor(physics_, options_.seed, job.index, step);
}

void Run::finish(JobState& job) {
  job.phase = Phase::kFinished;
  job.finish_seconds = now_;
  ++job.version;
  data_.leave(job.index);
  cluster_.remove_trainer(job, now_);
  wake_for_workers(job);
  std::erase(running_, job.index);
  deactivate(job.index);
  --unfinished_;
  request_admission();
  decision_due_ = true;
}

void Run::activate(int index) { active_.insert(std::upper_bound(active_.begin(), active_.end(), index), index); }
void Run::deactivate(int index) { std::erase(active_, index); }

void Run::request_admission() {
  if (physics_.admission_period_seconds <= 0) {
    admission_due_ = true;
    return;
  }
  const double at = next_multiple(now_, physics_.admission_period_seconds);
  if (at <= now_) {
    admission_due_ = true;
  } else if (at != admission_at_) {
    admission_at_ = at;
    events_.push({at, EventKind::kAdmission});
  }
}

// The queue of the simulated cluster, the same under every policy: by arrival with backfill. A gang that does not fit
// is passed over, however long it has waited.
void Run::admit() {
  admission_due_ = false;
  std::vector<int> left;
  for (const int index : waiting_) {
    std::vector<HostState> hosts = cluster_.find_hosts(jobs_[index].spec->gpus);
    if (hosts.empty())
      left.push_back(index);
    else
      start(jobs_[index], std::move(hosts));
  }
  waiting_ = std::move(left);
}

void Run::start(JobState& job, std::vector<HostState> hosts) {
  if (job.restarts > 0) job.requeued_seconds += now_ - job.updated_seconds;
  job.updated_seconds = now_;
  job.counters = {};
  cluster_.start_trainer(job, std::move(hosts), now_);
  const double startup_seconds = job.spec->startup_seconds.value_or(physics_.trainer_startup_seconds);
  if (startup_seconds > 0) job.evaluation_ends_seconds = now_ + startup_seconds;
  if (job.spec->data_set >= 0)
    read_block(job, static_cast<int>(job.done_seconds / block_seconds(*job.spec) + kDoneTolerance));
  running_.insert(std::upper_bound(running_.begin(), running_.end(), job.index), job.index);
  decision_due_ = true;
}

void Run::decide() {
  const bool something_happened = decision_due_;
  decision_due_ = period_over_ = false;
  for (const int index : running_) advance(jobs_[index], now_);
  const View view{cluster_.nodes(), jobs_, active_, now_, options_.seed, metrics_lost_ > 0};
  const scheduler::ClusterSnapshot& snapshot = snapshots_.take(view);
  const double began = cpu_seconds();
  const scheduler::Plan plan = policy_.decide(snapshot);
  totals_.decide_seconds += cpu_seconds() - began;
  ++totals_.decisions;
  const bool changed = cluster_.apply(plan, active_, now_);
  plan_next_decision(changed || something_happened);
}

void Run::plan_next_decision(bool anything_new) {
  const double base = physics_.decision_period_seconds;
  const double most = std::max(base, physics_.decision_period_most_seconds);
  period_ = anything_new ? base : std::min(most, 2 * period_);
  if (most == base) period_ = base;
  decision_at_ = base * (std::floor(now_ / base + 1e-9) + std::floor(period_ / base + 1e-9));
  if (!running_.empty()) events_.push({decision_at_, EventKind::kDecision});
}

// Brings supply, rates and predictions of everything that changed up to date.
void Run::refresh() {
  bool any = false;
  auto& nodes = cluster_.nodes();
  std::vector<bool> shared(nodes.size(), false);
  for (const int index : running_) {
    if (!jobs_[index].dirty) continue;
    any = true;
    for (const HostState& host : jobs_[index].hosts) {
      if (!shared[host.node]) share_host_cpu(nodes[host.node], host.node, jobs_, physics_);
      shared[host.node] = true;
    }
  }
  if (!any) return;
  share_idle_cpu_with_workers(nodes, jobs_, running_, now_, physics_);
  share_network(nodes, jobs_, running_, now_, physics_);
  const std::vector<double> ratios = storage_ratios();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    JobState& job = jobs_[running_[i]];
    if (job.dirty || !ratios.empty()) set_rates(job, ratios.empty() ? kNever : ratios[i]);
  }
}

// Share of the storage that each running job gets, over what it needs at full speed; empty when there is enough for
// any. A job asks for what its CPU can make use of: nothing while it evaluates.
std::vector<double> Run::storage_ratios() const {
  if (physics_.storage_gbps <= 0) return {};
  std::vector<double> at_full_speed, needs;
  for (const int index : running_) {
    const JobState& job = jobs_[index];
    const double fed = rates_of(job, cluster_.nodes(), now_, kNever, physics_).supply_ratio;
    at_full_speed.push_back(storage_need_gbps(job, truth_));
    needs.push_back(at_full_speed.back() * std::min(1.0, fed));
  }
  std::vector<double> ratios = scheduler::fair_shares(needs, physics_.storage_gbps);
  for (std::size_t i = 0; i < ratios.size(); ++i)
    ratios[i] = needs[i] <= ratios[i] ? kNever : ratios[i] / at_full_speed[i];
  return ratios;
}

void Run::set_rates(JobState& job, double storage_ratio) {
  advance(job, now_);
  job.rates = rates_of(job, cluster_.nodes(), now_, storage_ratio, physics_);
  job.rates.per_second.read_bytes = job.rates.speed * storage_need_gbps(job, truth_) * 1e9 / 8;
  record_history(job, physics_);
  if (job.fast_seconds < 0 && job.rates.speed >= kFast) job.fast_seconds = now_;
  job.dirty = false;
  ++job.version;
  predict(job);
  wake_for_workers(job);
  if (options_.timeline)
    timelines_[job.index].push_back(
        {now_, job.rates.speed, job.rates.local_cores, job.rates.remote_cores, job.knee_cores});
}

void Run::predict(JobState& job) {
  double at = kNever;
  if (job.evaluation_ends_seconds >= 0) {
    at = job.evaluation_ends_seconds;
  } else if (job.rates.speed > 0) {
    double target = job.spec->ideal_seconds;
    if (job.spec->data_set >= 0) target = std::min(target, (job.block + 1) * block_seconds(*job.spec));
    const double epoch = epoch_seconds(*job.spec, physics_);
    if (epoch > 0) target = std::min(target, (job.epoch + 1) * epoch);
    if (physics_.cost_change > 0) target = std::min(target, (job.cost_step + 1) * physics_.cost_change_seconds);
    at = now_ + std::max(0.0, target - job.done_seconds) / job.rates.speed;
  }
  if (at != kNever) events_.push({at, EventKind::kMilestone, job.index, job.version});
}

// The next moment at which one of its workers becomes ready, warm, or gone.
void Run::wake_for_workers(JobState& job) {
  double at = kNever;
  for (const WorkerState& worker : job.workers) {
    if (worker.node < 0) continue;
    for (const double moment : {worker.gone_seconds, worker.ready_seconds, worker.warm_seconds})
      if (moment > now_) at = std::min(at, moment);
  }
  if (at == kNever || at == next_wake_[job.index]) return;
  next_wake_[job.index] = at;
  events_.push({at, EventKind::kWorkers, job.index});
}

RunRecord Run::record() const {
  RunRecord record = totals_;
  record.policy = policy_.name();
  record.placement = cluster_.counts();
  record.cache = truth_.cache.rule;
  record.keeps_orders = data_.keeps_orders();
  for (const JobState& job : jobs_) {
    JobRecord entry;
    entry.start_seconds = job.first_start_seconds;
    entry.fast_seconds = job.fast_seconds;
    entry.finish_seconds = job.finish_seconds;
    entry.busy_gpu_seconds = job.busy_gpu_seconds;
    entry.busy_gpu_seconds_while_arriving = job.busy_gpu_seconds_while_arriving;
    entry.allocated_gpu_seconds = job.allocated_gpu_seconds;
    entry.core_seconds = job.core_seconds;
    entry.worker_core_seconds = job.worker_core_seconds;
    entry.workers_started = job.workers_started;
    entry.allocation_changes = job.allocation_changes;
    entry.restarts = job.restarts;
    entry.requeued_seconds = job.requeued_seconds;
    entry.reads = data_.reads(job.index);
    entry.timeline = timelines_[job.index];
    record.jobs.push_back(std::move(entry));
    record.makespan_seconds = std::max(record.makespan_seconds, job.finish_seconds);
  }
  return record;
}

Result<RunRecord> simulate(const Cluster& cluster, const Workload& workload, scheduler::Policy& policy,
                           const RunOptions& options) {
  return Run(cluster, workload, policy, options).run();
}

}  // namespace sluice::simulator
