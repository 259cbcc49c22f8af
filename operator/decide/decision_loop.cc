#include "operator/decide/decision_loop.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/api/config_map.h"
#include "operator/api/names.h"
#include "operator/api/object.h"
#include "operator/decide/order_delivery.h"
#include "scheduler/decide/decide.h"
#include "src/base/guarded.h"
#include "src/base/logging.h"

namespace sluice::decide {
namespace {

int ready_workers(const scheduler::Job& job) {
  return static_cast<int>(std::count_if(job.workers.begin(), job.workers.end(), [](const scheduler::Worker& worker) {
    return worker.ready && !worker.draining;
  }));
}

constexpr auto kLearntPause = std::chrono::minutes(1);

template <class TimePoint>
double seconds_of(TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string left_free(int percent) {
  return std::to_string(percent) +
         " % of the CPU of nodes with four cores and more stays free for other pods (scheduler.freeCpuPercent).";
}

std::int64_t feeder_millicores(const scheduler::Job& job) {
  std::int64_t millicores = 0;
  for (const scheduler::TrainerHost& host : job.hosts) millicores += host.request_millicores;
  return millicores;
}

}  // namespace

DecisionLoop::DecisionLoop(LoopOptions options, LoopSeams seams, const Clock& clock, DecisionBoard& board)
    : options_(std::move(options)), seams_(std::move(seams)), clock_(clock), board_(board) {}

void DecisionLoop::run(std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    alive_until_ = clock_.now();
  }
  while (!stop.stop_requested()) {
    show_life();
    decide(options_.orders_at_once, stop);
    wait_for_next(stop);
  }
  std::lock_guard lock(mutex_);
  alive_until_.reset();
}

void DecisionLoop::show_life() {
  std::lock_guard lock(mutex_);
  if (alive_until_) alive_until_ = clock_.now();
}

Result<void> DecisionLoop::perform(const kube::Action& action, const std::stop_token& stop) {
  auto outcome = seams_.perform(action, stop);
  show_life();
  return outcome;
}

Clock::Duration DecisionLoop::silent_for() const {
  std::lock_guard lock(mutex_);
  return alive_until_ ? std::max(Clock::Duration::zero(), clock_.now() - *alive_until_) : Clock::Duration::zero();
}

void DecisionLoop::trigger() {
  std::lock_guard lock(mutex_);
  triggered_ = true;
  sleep_.request_stop();
}

Clock::TimePoint DecisionLoop::next_due() const {
  std::lock_guard lock(mutex_);
  if (!last_round_began_) return clock_.now();
  return due(triggered_);
}

// The next try is made by the first decision after the pause.
bool DecisionLoop::is_waiting() const { return !resizing_.fixed(seconds_of(clock_.now() - options_.interval)).empty(); }

Clock::TimePoint DecisionLoop::due(bool triggered) const {
  const Clock::Duration pause = triggered ? options_.min_pause : options_.interval;
  return *last_round_began_ + std::max(pause, 10 * last_took_);
}

void DecisionLoop::wait_for_next(std::stop_token stop) {
  const std::stop_callback wake_on_stop(stop, [this] { trigger(); });
  Clock::TimePoint soonest, next;
  {
    std::lock_guard lock(mutex_);
    soonest = due(true);
    next = due(false);
    if (alive_until_) alive_until_ = std::max(next, clock_.now());
  }
  if (!clock_.sleep_until(soonest, stop)) return;
  std::stop_token interrupted;
  {
    std::lock_guard lock(mutex_);
    if (!triggered_) sleep_ = std::stop_source();
    interrupted = sleep_.get_token();
  }
  clock_.sleep_until(next, interrupted);
}

void DecisionLoop::decide_once(std::stop_token stop) { decide(1, stop); }

// A round that fails leaves what the last one has decided.
void DecisionLoop::decide(int orders_at_once, const std::stop_token& stop) {
  {
    std::lock_guard lock(mutex_);
    last_round_began_ = clock_.now();
    triggered_ = false;
  }
  const auto decided = guarded(ErrorCode::kInternal, "decision", [&] { run_round(orders_at_once, stop); });
  if (!decided.ok()) log_error("decide", "no decision", {{"error", decided.error().to_string()}});
}

void DecisionLoop::run_round(int orders_at_once, const std::stop_token& stop) {
  // 1. Observe. The metrics first: they take longest, and the objects should be as fresh as possible.
  observe::Observations observations = seams_.measure(stop);
  show_life();
  rare_scrapes_ = observations.rare_scrapes;
  if (const auto answered_at = observations.answered_at_seconds)
    observations.move_times(skew_.seconds_ahead(*answered_at, seconds_of(clock_.wall_now())));
  if (stop.stop_requested()) return;
  const Clock::TimePoint started = clock_.now();
  const observe::ClusterObjects objects = seams_.see();

  // 2. Decide.
  recall(stop);
  const double now_seconds = seconds_of(started);
  const auto snapshot = std::make_shared<const scheduler::ClusterSnapshot>(builder_.build(
      objects, observations, memories_, circumstances(now_seconds, stop), seconds_of(clock_.wall_now())));
  const scheduler::Plan plan = scheduler::decide(*snapshot, options_.scheduler);
  std::vector<FeederOrder> resizes = resizing_.orders(builder_.planned_feeders(), plan, now_seconds);

  // 3. Publish before acting: the pools' steps look here for the victims when they see the new number.
  board_.publish(round_of(objects, snapshot, plan));
  const Clock::Duration took = clock_.now() - started;
  {
    std::lock_guard lock(mutex_);
    last_took_ = took;
  }
  seams_.decided(took);

  // 4. Order: room is freed before it is filled, and new workers have the new size.
  const OrderDelivery delivery{[&](const kube::Action& action) { return perform(action, stop); }, seams_.record,
                               orders_at_once};
  const auto refused = [this](const FeederOrder& order, const Error& error) {
    return resizing_.refused(order, error, seconds_of(clock_.now()));
  };
  delivery.size_workers(sizing_.orders(objects, builder_.sized_workers(), plan));
  const auto growing = std::find_if_not(resizes.begin(), resizes.end(), std::mem_fn(&FeederOrder::frees_room));
  delivery.resize_feeders({resizes.begin(), growing}, refused);
  delivery.scale_pools(scale_orders(objects, plan, resizing_.doubtful()));
  delivery.resize_feeders({growing, resizes.end()}, refused);
  learn(plan, stop);
}

void DecisionLoop::recall(std::stop_token stop) {
  if (recalled_ || !options_.learnt) return;
  const auto data = seams_.read_learnt(std::move(stop));
  recalled_ = data.ok() || data.error().code() == ErrorCode::kNotFound;
  if (data.ok())
    learnt_.load(*data, seconds_of(clock_.wall_now()));
  else if (!recalled_)
    log_warning("decide", "the knowledge of earlier jobs was not read", {{"error", data.error().to_string()}});
}

// None if the job's spec says the size.
std::optional<api::WorkerSize> DecisionLoop::size_of(const scheduler::JobId& job) const {
  const auto sized = builder_.sized_workers().find(job);
  if (sized == builder_.sized_workers().end()) return std::nullopt;
  return sized->second.size;
}

// A job may end at any time, so each round keeps the knowledge of it that the end would leave.
void DecisionLoop::learn(const scheduler::Plan& plan, const std::stop_token& stop) {
  if (!recalled_ || !options_.learnt) return;
  for (const scheduler::JobPlan& job : plan.jobs)
    if (const scheduler::Estimate& estimate = job.estimate;
        estimate.metrics_usable() && estimate.memory && estimate.confidence != scheduler::Confidence::kNone)
      learnt_.learn(builder_.likenesses().at(job.id), *estimate.memory, job.workers, size_of(job.id),
                    seconds_of(clock_.wall_now()));
  const bool too_soon = learnt_written_at_ && clock_.now() - *learnt_written_at_ < kLearntPause;
  if (!learnt_.has_news() || too_soon) return;
  learnt_written_at_ = clock_.now();
  const kube::Action action{kube::Verb::kApply, kube::kConfigMaps, *options_.learnt,
                            api::config_data_patch(learnt_.data()), std::string(api::kOperatorManager)};
  if (const auto done = perform(action, stop); done.ok())
    learnt_.written();
  else
    log_warning("decide", "the knowledge of jobs was not written", {{"error", done.error().to_string()}});
}

observe::Circumstances DecisionLoop::circumstances(double now_seconds, std::stop_token stop) {
  if (options_.resize_feeders && !server_resizes_pods_) {
    const auto answer = seams_.resizes_pods(std::move(stop));
    if (answer.ok())
      server_resizes_pods_ = *answer;
    else
      log_warning("decide", "feeders keep their CPU for now: the API server did not answer whether it resizes pods",
                  {{"error", answer.error().to_string()}});
  }
  auto guess = [this](const std::string& likeness) -> std::optional<observe::Guess> {
    const auto known = learnt_.find(likeness, seconds_of(clock_.wall_now()));
    if (!known) return std::nullopt;
    return observe::Guess{known->memory, known->workers, known->size};
  };
  return {options_.cluster_cpu_percent,
          options_.free_cpu_percent,
          options_.resize_feeders && server_resizes_pods_.value_or(false),
          resizing_.fixed(now_seconds),
          options_.nodes,
          options_.budgets,
          options_.namespace_caps,
          options_.storages,
          std::move(guess)};
}

Round DecisionLoop::round_of(const observe::ClusterObjects& objects,
                             std::shared_ptr<const scheduler::ClusterSnapshot> snapshot, const scheduler::Plan& plan) {
  const std::vector<const scheduler::Job*> jobs = scheduler::jobs_by_id(*snapshot);
  observe::EstimatorMemories memories;
  Round round;
  round.capacity_millicores = plan.capacity_millicores;
  round.granted_millicores = plan.granted_millicores;
  round.utilisation = scheduler::utilisation_of(*snapshot, plan, options_.scheduler);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const scheduler::Job& job = *jobs[i];
    const scheduler::JobPlan& job_plan = plan.jobs[i];
    const kube::ObjectKey key{job.id.job_namespace, job.id.name};
    JobDecision decision{api::Object(*objects.training_jobs.at(key)).uid(),
                         job_plan,
                         job.observation.measurement,
                         job.allocated_workers,
                         ready_workers(job),
                         job.worker_millicores,
                         feeder_millicores(job),
                         resizing_.problem_of(job.id, seconds_of(clock_.now())),
                         {},
                         {},
                         {}};
    if (const auto capped = builder_.capped().find(job.id); capped != builder_.capped().end())
      decision.capped = capped->second;
    if (job_plan.reason == scheduler::Reason::kCpu && builder_.keeps_cpu_free())
      decision.left_free = left_free(options_.free_cpu_percent);
    if (job_plan.reason != scheduler::Reason::kNotRunning && job_plan.reason != scheduler::Reason::kModeOff)
      decision.rare_scrapes = rare_scrapes_;
    if (job_plan.estimate.memory) memories[decision.job_uid] = *job_plan.estimate.memory;
    round.jobs[key] = std::make_shared<const JobDecision>(std::move(decision));
  }
  memories_ = std::move(memories);  // those of jobs that are gone are forgotten
  round.snapshot = std::move(snapshot);
  return round;
}

}  // namespace sluice::decide
