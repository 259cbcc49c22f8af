// Every job jumps to its own knee, all cut by one factor where the CPU does not reach: measurement without marginal
// value.
//
// It shares Sluice's estimator and headroom, so only the allocation separates the two. One number multiplies the CPU of
// every job: the largest factor <= 1 at which all fits. A job's CPU is first on the trainer's own hosts, the rest on
// data workers. CPU that trainers of a host leave of their shares goes to its other trainers in proportion to their
// remaining need. A job without metrics has its GPU-proportional share.
//
// Source: none; the obvious joint policy.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/policy.h"

namespace sluice::scheduler {

class KneeProportionalPolicy : public Policy {
 public:
  explicit KneeProportionalPolicy(const Config& config) : config_(config) {}

  std::string_view name() const override { return "knee-proportional"; }
  Plan decide(const ClusterSnapshot& snapshot) override;

 private:
  const Config config_;
};

}  // namespace sluice::scheduler
