#include "operator/decide/worker_sizing.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"
#include "operator/api/training_job.h"

namespace sluice::decide {
namespace {

using nlohmann::json;
using observe::SizedWorkers;

constexpr double kMargin = 1.15;
constexpr double kLeastChange = 0.2;
constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kStep = 16 * kMebibyte;
constexpr double kSettledSeconds = 600;  // of being ready, after which a worker has seen its largest batches

std::string in_mebibytes(double bytes) { return std::to_string(std::llround(bytes / kMebibyte)) + "Mi"; }

// Requests have whole steps, so that noise does not change them.
std::int64_t with_margin(double peak_bytes) {
  const double steps = std::ceil(std::min(kMargin * peak_bytes, 1e15) / static_cast<double>(kStep));
  return static_cast<std::int64_t>(steps) * kStep;
}

// With kApply the operator owns the size. kMergePatch with null takes the size away, even if another manager has set
// it.
kube::Action size_pool(kube::Verb verb, const api::DataWorkerPool& pool, json resources) {
  kube::Action action{verb, kube::kDataWorkerPools, pool.key(), api::worker_resources_patch(std::move(resources)),
                      std::string(api::kSizingManager)};
  action.uid = pool.uid();
  return action;
}

SizeOrder order_of(const api::TrainingJob& training_job, const api::DataWorkerPool& pool, const SizedWorkers& workers,
                   const NewSize& next) {
  const std::string words =
      std::to_string(next.size.millicores) + "m and " + in_mebibytes(static_cast<double>(next.size.memory_bytes));
  return {size_pool(kube::Verb::kApply, pool, api::render(workers.bounds.resources(next.size))),
          kube::Event{kube::kTrainingJobs, training_job.key(), training_job.uid(), kube::EventType::kNormal,
                      "WorkersSized", "SizeTo" + words, "each data worker gets " + words + " of memory: " + next.why}};
}

// A TrainingJob that says now what its workers get has taken the choice back.
bool is_withdrawn(const api::TrainingJob& training_job, const api::DataWorkerPool& pool) {
  return pool.has_worker_resources() && !training_job.worker_resources().is_null();
}

}  // namespace

std::optional<NewSize> next_size(const SizedWorkers& workers, std::int64_t least_bytes,
                                 std::optional<double> remaining_seconds) {
  const api::WorkerSize in_force = workers.chosen.value_or(workers.bounds.first());
  if (workers.refused) return NewSize{workers.size, "the LimitRange of its namespace allows no other"};
  if (workers.count == 0) {
    if (workers.size == in_force) return std::nullopt;
    return NewSize{workers.size, "the size to begin with"};
  }
  api::WorkerSize size = in_force;
  if (workers.bounds.within(least_bytes) > size.memory_bytes) {
    size.memory_bytes = workers.bounds.within(least_bytes);
    return NewSize{size, "one ran out of memory with a request of " + in_mebibytes(0.5 * least_bytes)};
  }
  if (workers.bounds.within(size.memory_bytes) != size.memory_bytes) {
    size.memory_bytes = workers.bounds.within(size.memory_bytes);
    return NewSize{size, "the bounds have changed"};
  }
  if (!workers.peak_bytes || remaining_seconds.value_or(kSettledSeconds) < kSettledSeconds) return std::nullopt;
  size.memory_bytes = workers.bounds.within(std::max(with_margin(*workers.peak_bytes), least_bytes));
  const double change = static_cast<double>(size.memory_bytes) / static_cast<double>(in_force.memory_bytes) - 1;
  if (std::abs(change) < kLeastChange) return std::nullopt;
  if (change < 0 && workers.ready_seconds < kSettledSeconds) return std::nullopt;
  return NewSize{size, "the most that one used is " + in_mebibytes(*workers.peak_bytes)};
}

std::vector<SizeOrder> WorkerSizing::orders(const observe::ClusterObjects& objects,
                                            const std::map<scheduler::JobId, SizedWorkers>& workers,
                                            const scheduler::Plan& plan) {
  std::vector<SizeOrder> orders;
  std::map<std::string, std::int64_t> least_bytes;  // of the jobs that are there
  for (const scheduler::JobPlan& job : plan.jobs) {
    const auto object = objects.training_jobs.find({job.id.job_namespace, job.id.name});
    if (object == objects.training_jobs.end()) continue;
    const kube::ObjectPointer found = observe::own_pool(objects, *object->second);
    if (!found) continue;
    const api::TrainingJob training_job(*object->second);
    const api::DataWorkerPool pool(*found);
    const auto sized = workers.find(job.id);
    if (sized == workers.end()) {
      if (is_withdrawn(training_job, pool))
        orders.push_back({size_pool(kube::Verb::kMergePatch, pool, nullptr), std::nullopt});
      continue;
    }
    if (sized->second.count == 0 && job.workers == 0 && job.recommended == 0) continue;
    std::int64_t& least = least_bytes[sized->second.job_uid];
    least = std::max(least_bytes_[sized->second.job_uid], 2 * sized->second.exhausted_bytes);
    auto next = next_size(sized->second, least, job.estimate.remaining_seconds);
    if (!next && pool.has_worker_resources() && !pool.worker_size())
      next = NewSize{sized->second.size, "the pool has no usable size"};
    if (next) orders.push_back(order_of(training_job, pool, sized->second, *next));
  }
  least_bytes_ = std::move(least_bytes);
  return orders;
}

}  // namespace sluice::decide
