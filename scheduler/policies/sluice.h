// Ours: decide(), with the objective of the configuration.
#pragma once

#include "scheduler/config.h"
#include "scheduler/policy.h"

namespace sluice::scheduler {

class SluicePolicy : public Policy {
 public:
  // A simulated cluster can stop a worker here and start its successor there, and reads no sentences.
  explicit SluicePolicy(Config config) : config_(config) {
    config_.replaces_workers = true;
    config_.in_words = false;
  }

  std::string_view name() const override { return "sluice"; }
  Plan decide(const ClusterSnapshot& snapshot) override;

 private:
  Config config_;
};

}  // namespace sluice::scheduler
