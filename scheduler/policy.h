// What the simulator compares: anything that turns a snapshot of the cluster into a plan.
//
// A policy sees the snapshot and nothing else: no clock, no truth behind the metrics. Ours is a wrapper around the pure
// function decide(); others may keep state between calls, as their originals do.
#pragma once

#include <string_view>

#include "scheduler/plan.h"
#include "scheduler/snapshot.h"

namespace sluice::scheduler {

// Thread safety: none; one policy object serves one run.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;

  // One JobPlan per job of the snapshot, ordered by id. What a policy has no opinion on stays as it is: it plans
  // `allocated_workers` and the hosts' present CPU.
  // REQUIRES: calls in the order of ClusterSnapshot::taken_at_seconds
  virtual Plan decide(const ClusterSnapshot& snapshot) = 0;
};

}  // namespace sluice::scheduler
