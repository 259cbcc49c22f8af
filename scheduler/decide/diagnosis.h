// What limits a job's training speed now, and the figures that say so.
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/allocate/job_allocation.h"
#include "scheduler/model/config.h"
#include "scheduler/model/plan.h"

namespace sluice::scheduler {

struct Diagnosis {
  Bottleneck bottleneck = Bottleneck::kUnknown;
  double available_cores = 0;  // of a starved job: those that could have worked during all of the window
  double network_load = 0;     // of one that is bound by it: share of a host's network that is in use
};

Diagnosis diagnose(const JobAllocation& allocation, const NodeTable& nodes, const Config& config);

// The figures that it follows from, in words. REQUIRES: it is this allocation's
std::string evidence_of(const Diagnosis& diagnosis, const JobAllocation& allocation);

// What ends the trainer's wait for storage or the network; empty for another bottleneck. docs/scheduling.md lists it.
std::string_view remedy_of(Bottleneck bottleneck);

}  // namespace sluice::scheduler
