#include "operator/decide/decision_loop.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/observe/fields.h"
#include "scheduler/decide.h"
#include "src/base/in_parallel.h"
#include "src/base/logging.h"

namespace sluice::decide {
namespace {

int ready_workers(const scheduler::Job& job) {
  return static_cast<int>(std::count_if(job.workers.begin(), job.workers.end(), [](const scheduler::Worker& worker) {
    return worker.ready && !worker.draining;
  }));
}

}  // namespace

DecisionLoop::DecisionLoop(LoopOptions options, LoopSeams seams, const Clock& clock, DecisionBoard& board)
    : options_(std::move(options)), seams_(std::move(seams)), clock_(clock), board_(board) {}

void DecisionLoop::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    decide(options_.orders_at_once, stop);
    wait_for_next(stop);
  }
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

void DecisionLoop::decide_once(std::stop_token stop) { decide(1, std::move(stop)); }

void DecisionLoop::decide(int orders_at_once, std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    last_round_began_ = clock_.now();
    triggered_ = false;
  }
  // 1. Observe. The metrics first: they take longest, and the objects should be as fresh as possible.
  const observe::Observations observations = seams_.measure(stop);
  if (stop.stop_requested()) return;
  const Clock::TimePoint started = clock_.now();
  const observe::ClusterObjects objects = seams_.see();

  // 2. Decide.
  const auto snapshot = std::make_shared<const scheduler::ClusterSnapshot>(
      builder_.build(objects, observations, memories_, options_.cluster_cpu_percent,
                     std::chrono::duration<double>(clock_.wall_now().time_since_epoch()).count()));
  const scheduler::Plan plan = scheduler::decide(*snapshot, options_.scheduler);

  // 3. Publish before acting: the pools' steps look here for the victims when they see the new number.
  board_.publish(round_of(objects, snapshot, plan));
  const Clock::Duration took = clock_.now() - started;
  {
    std::lock_guard lock(mutex_);
    last_took_ = took;
  }
  seams_.decided(took);

  // 4. Order.
  give_all(scale_orders(objects, plan), orders_at_once, stop);
}

// They begin in their order: room is freed before it is filled.
void DecisionLoop::give_all(std::vector<ScaleOrder> orders, int at_once, const std::stop_token& stop) {
  // An order that fails is given again by the next decision; the others do not wait for it.
  std::ignore = in_parallel(static_cast<int>(std::ssize(orders)), at_once, [&](int index) -> Result<void> {
    give(orders[index], stop);
    return {};
  });
}

void DecisionLoop::give(ScaleOrder& order, const std::stop_token& stop) {
  const std::string job = order.event.key.to_string();
  if (auto done = seams_.perform(order.action, stop); !done.ok()) {
    log_warning("decide", "scaling failed", {{"job", job}, {"error", done.error().to_string()}});
    return;
  }
  log_info("decide", "scaled", {{"job", job}, {"from", order.from}, {"to", order.to}, {"why", order.event.note}});
  seams_.record(std::move(order.event));
}

Round DecisionLoop::round_of(const observe::ClusterObjects& objects,
                             std::shared_ptr<const scheduler::ClusterSnapshot> snapshot, const scheduler::Plan& plan) {
  std::map<scheduler::JobId, const scheduler::Job*> jobs;
  for (const scheduler::Job& job : snapshot->jobs) jobs[job.id] = &job;
  observe::EstimatorMemories memories;
  Round round;
  round.capacity_millicores = plan.capacity_millicores;
  round.granted_millicores = plan.granted_millicores;
  round.utilisation = scheduler::utilisation_of(*snapshot, plan, options_.scheduler);
  for (const scheduler::JobPlan& job_plan : plan.jobs) {
    const kube::ObjectKey key{job_plan.id.job_namespace, job_plan.id.name};
    const scheduler::Job& job = *jobs.at(job_plan.id);
    JobDecision decision{observe::text_field(*objects.training_jobs.at(key), "/metadata/uid"),
                         job_plan,
                         job.observation.measurement,
                         job.allocated_workers,
                         ready_workers(job),
                         job.worker_millicores};
    if (job_plan.memory) memories[decision.job_uid] = *job_plan.memory;
    round.jobs[key] = std::make_shared<const JobDecision>(std::move(decision));
  }
  memories_ = std::move(memories);  // those of jobs that are gone are forgotten
  round.snapshot = std::move(snapshot);
  return round;
}

}  // namespace sluice::decide
