// Synergy-Tune: the CPU of each GPU host is divided between the trainers on it by their profiles (synergy_tune.h). No
// data workers: Synergy moves CPU between jobs of a server, not between servers.
//
// The profile is the job's knee by Sluice's estimator (estimator.h), rounded up to whole cores with 20 % headroom.
// Synergy profiles offline and knows it from the start. A job without metrics has its GPU-proportional share. Divided
// anew at every decision; the original does so in rounds of 300 s.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/policy.h"

namespace sluice::scheduler {

class SynergyPolicy : public Policy {
 public:
  explicit SynergyPolicy(const Config& config) : config_(config) {}

  std::string_view name() const override { return "synergy"; }
  Plan decide(const ClusterSnapshot& snapshot) override;

 private:
  const Config config_;
};

}  // namespace sluice::scheduler
