// Ours: decide(), with the objective of the configuration.
#pragma once

#include "scheduler/config.h"
#include "scheduler/policy.h"

namespace sluice::scheduler {

class SluicePolicy : public Policy {
 public:
  explicit SluicePolicy(const Config& config) : config_(config) {}

  std::string_view name() const override { return "sluice"; }
  Plan decide(const ClusterSnapshot& snapshot) override;

 private:
  const Config config_;
};

}  // namespace sluice::scheduler
