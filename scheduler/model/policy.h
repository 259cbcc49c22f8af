// A policy turns a snapshot of the cluster into a plan. The simulator compares policies.
//
// A policy sees the snapshot and nothing else: no clock, no truth behind the metrics. Sluice's own wraps the pure
// function decide(); baselines may keep state between calls, as their originals do.
#pragma once

#include <string_view>

#include "scheduler/model/plan.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Thread safety: none; one policy object serves one run.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;

  // One JobPlan per job of the snapshot, ordered by id. Where a policy decides nothing it plans `allocated_workers` and
  // the hosts' present CPU. REQUIRES: calls in the order of ClusterSnapshot::taken_at_seconds
  virtual Plan decide(const ClusterSnapshot& snapshot) = 0;
};

}  // namespace sluice::scheduler
