// Sluice itself: decide() as the operator calls it.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/policy.h"

namespace sluice::scheduler {

class SluicePolicy : public Policy {
 public:
  explicit SluicePolicy(Config config) : config_(config) {
    config_.in_words = false;  // a simulation reads no sentences
  }

  std::string_view name() const override { return "sluice"; }
  Plan decide(const ClusterSnapshot& snapshot) override;

 private:
  Config config_;
};

}  // namespace sluice::scheduler
