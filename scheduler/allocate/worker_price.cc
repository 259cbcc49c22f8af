#include "scheduler/allocate/worker_price.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/model/progress.h"

namespace sluice::scheduler {

WorkerPrice::WorkerPrice(const NodeTable& nodes, const Config& config) : nodes_(nodes), config_(config) {
  std::pair<bool, double> first{true, std::numeric_limits<double>::infinity()};
  for (const NodeState& state : nodes.states())
    if (state.serves_workers()) first = std::min(first, {state.node->gpus > 0, state.price_per_core_hour});
  if (first.second < std::numeric_limits<double>::infinity()) core_price_ = first.second;
}

double WorkerPrice::trainers_core_hours(const JobAllocation& allocation) const {
  const double unpriced = config_.core_hours_per_gpu_hour * std::max(allocation.job->gpus, 1);
  if (core_price_ <= 0) return unpriced;
  double price = 0;
  for (const HostShare& host : allocation.hosts) {
    const Node* node = host.node == kNowhere ? nullptr : nodes_[host.node].node;
    if (node == nullptr || node->price_per_hour <= 0 || node->gpus <= 0) return unpriced;
    price += node->price_per_hour * host.gpus / node->gpus;
  }
  return price > 0 ? price / core_price_ : unpriced;
}

int WorkerPrice::paying(const JobAllocation& allocation, double x, int workers) const {
  // A rate that is only assumed says nothing of the price: one worker measures it.
  const bool is_measured = allocation.estimate->memory && allocation.estimate->memory->remote_rate_per_core;
  if (!is_measured && allocation.workers == 0 && allocation.estimate->starved) return 1;
  const double hour = trainers_core_hours(allocation) + allocation.workers * allocation.worker_cores();
  const double bonus = allocation.workers < allocation.held_workers ? 1 + config_.held_bonus : 1;
  const double speed = progress(x, config_.softmin_exponent);
  const auto pay = [&](int count) {
    const double cores = count * allocation.worker_cores();
    const double faster = progress(x + cores * allocation.supply_per_remote_core, config_.softmin_exponent);
    return bonus * hour * (faster - speed) > cores * speed;
  };
  // The curve is concave: fewer pay where so many do not.
  while (workers > 0 && !pay(workers)) workers /= 2;
  return workers;
}

}  // namespace sluice::scheduler
