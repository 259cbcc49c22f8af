#include "scheduler/policies/pending_pods.h"

#include <algorithm>

namespace sluice::scheduler {

void PendingPods::set_missing(const JobId& job, int missing, double now_seconds) {
  std::deque<Batch>& batches = batches_[job];
  int known = 0;
  for (const Batch& batch : batches) known += batch.count;
  if (missing > known) batches.push_back({now_seconds, missing - known});
  for (int surplus = known - missing; surplus > 0;) {
    const int taken = std::min(surplus, batches.back().count);
    surplus -= taken;
    batches.back().count -= taken;
    if (batches.back().count == 0) batches.pop_back();
  }
  if (batches.empty()) batches_.erase(job);
}

void PendingPods::placed(const JobId& job) {
  const auto found = batches_.find(job);
  std::deque<Batch>& batches = found->second;
  if (--batches.front().count == 0) batches.pop_front();
  if (batches.empty()) batches_.erase(found);
}

void PendingPods::keep_only(const std::set<JobId>& jobs) {
  std::erase_if(batches_, [&](const auto& entry) { return !jobs.contains(entry.first); });
}

const std::deque<PendingPods::Batch>& PendingPods::of(const JobId& job) const {
  static const std::deque<Batch> kNone;
  const auto found = batches_.find(job);
  return found == batches_.end() ? kNone : found->second;
}

}  // namespace sluice::scheduler
