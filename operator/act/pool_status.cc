#include "operator/act/pool_status.h"

#include <algorithm>
#include <string>
#include <utility>

#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/status_draft.h"

namespace sluice::act {

using namespace api;

namespace {

constexpr double kReportSeconds = 10;   // between two statuses on the way to the wanted number
constexpr double kManyWaitSeconds = 1;  // of what others wait for: from here on a status waits for the last of it
constexpr double kReportsWaitAtMostSeconds = 60;
constexpr double kSchedulerWaitSeconds = 60;  // until people are told

// Null where it is so already.
std::optional<kube::Action> write_status(const DataWorkerPool& pool, const PoolStatusDraft& status) {
  if (!status.is_news()) return std::nullopt;
  kube::Action action{kube::Verb::kApplyStatus, kube::kDataWorkerPools, pool.key(), status.body(),
                      std::string(kOperatorManager)};
  action.uid = pool.uid();
  action.version = pool.resource_version();  // never over what has been said since
  return action;
}

}  // namespace

std::optional<kube::Action> pool_status(const PoolWorld& world, const Workers& workers, std::int64_t desired,
                                        const std::optional<Refusal>& blocked) {
  const DataWorkerPool pool(*world.pool);
  const auto live = static_cast<std::int64_t>(workers.live.size());
  const bool ready = workers.ready == desired && live == desired;
  const std::string count = std::to_string(workers.ready) + " of " + std::to_string(desired) + " workers are ready";
  Condition condition{"Ready", ready ? Truth::kTrue : Truth::kFalse, ready ? "AllReady" : kScaling, count};
  if (!ready && blocked) {
    condition.reason = blocked->reason;
    condition.message = count + ": " + blocked->message;
  }
  PoolStatusDraft status(pool);
  status.set_workers(live, workers.ready);
  status.set_conditions({condition}, world.now);
  return write_status(pool, status);
}

std::optional<Refusal> wait_at_gate(const Workers& workers) {
  for (const Worker& worker : workers.live)
    if (!worker.gate.empty())
      return Refusal{"WaitingForQuota", "worker " + worker.name + " waits at the scheduling gate " + worker.gate +
                                            "; the controller that set it, such as Kueue, lets it start"};
  return std::nullopt;
}

std::optional<Refusal> wait_for_scheduler(PoolStep& step, const PoolWorld& world, const Workers& workers) {
  std::optional<Refusal> waits;
  for (const Worker& worker : workers.live) {
    if (worker.awaited_scheduler.empty()) {
      step.memory.unplaced_since.erase(worker.uid);
      continue;
    }
    const double since_seconds = step.memory.unplaced_since.try_emplace(worker.uid, world.now_seconds).first->second;
    const double wait_seconds = since_seconds + kSchedulerWaitSeconds - world.now_seconds;
    if (wait_seconds > 0) {
      step.look_again(wait_seconds);
    } else if (!waits) {
      waits = Refusal{"WaitingForScheduler", "worker " + worker.name + " waits for the scheduler " +
                                                 worker.awaited_scheduler +
                                                 "; does it run, and what do the pod's events say?"};
    }
  }
  return waits;
}

void report(PoolStep& step, const PoolWorld& world, std::optional<kube::Action> status, bool arrived) {
  if (!status) return;
  std::optional<double>& since_seconds = step.memory.unreported_since_seconds;
  const bool pods_first = !step.actions.empty() || world.busy_seconds > 0;
  if (pods_first && !since_seconds) since_seconds = world.now_seconds;
  if (since_seconds) {
    const double waited_seconds = world.now_seconds - *since_seconds;
    const double wait_seconds = std::max(arrived ? 0 : kReportSeconds - waited_seconds,
                                         report_wait_seconds(waited_seconds, world.busy_seconds));
    if (wait_seconds > 0) return step.look_again(wait_seconds);
  }
  if (arrived)
    since_seconds.reset();
  else
    since_seconds = world.now_seconds;
  step.status = std::move(status);
}

double report_wait_seconds(double waited_seconds, double busy_seconds) {
  const bool many = busy_seconds >= kManyWaitSeconds;
  return std::min(busy_seconds, (many ? kReportsWaitAtMostSeconds : busy_seconds) - waited_seconds);
}

PoolStep refuse_pool(const PoolWorld& world, const PoolMemory& memory, const Refusal& refusal) {
  const DataWorkerPool pool(*world.pool);
  PoolStep step;
  step.memory = memory;
  PoolStatusDraft status(pool);
  status.keep_all();
  status.set_conditions({{"Ready", Truth::kFalse, refusal.reason, refusal.message}}, world.now);
  step.status = write_status(pool, status);
  return step;
}

}  // namespace sluice::act
