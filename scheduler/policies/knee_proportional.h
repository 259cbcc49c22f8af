// Every job jumps to its own knee, all cut by one factor where the CPU does not reach: measurement without marginal
// value.
//
// It shares our estimator and headroom, so what separates it from ours is the allocation alone. One number, the largest
// factor <= 1 at which everything fits, multiplies the CPU of every job: first on the trainer's own hosts, the rest on
// data workers. CPU that trainers of a host leave of their shares goes to its other trainers in proportion to what they
// still need. A job without metrics has its GPU-proportional share.
//
// Source: none; the obvious joint policy.
#pragma once

#include "scheduler/config.h"
#include "scheduler/policy.h"

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
