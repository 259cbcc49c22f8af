// What limits a job's training speed now, and the figures that say so.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/plan.h"

namespace sluice::scheduler {

struct Diagnosis {
  Bottleneck bottleneck = Bottleneck::kUnknown;
  std::string evidence;
};

Diagnosis diagnose(const Contender& contender, const NodeTable& nodes, const Config& config);

}  // namespace sluice::scheduler
