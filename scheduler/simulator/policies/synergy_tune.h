// Synergy-Tune on one server: how its CPU is divided between the jobs there.
//
// Source: Mohan et al., "Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters" (Synergy), OSDI'22,
// section 4.3.
//
//   Jobs in descending order of GPUs, then of CPU demand:
//   1 the demand of its profile, if so much is free
//   2 otherwise its GPU-proportional share at most. If that is not free either, jobs that were given more than
//     their share are cut back to it, those with most per GPU first
//   So GPU time is never lost for want of CPU, and no job has less than the smaller of its demand and its share.
//   3 the rest goes to jobs below their demand, in the same order (the original leaves it idle until the next
//     round)
//
// Thread safety: pure function on values.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::scheduler {

struct SynergyJob {
  int gpus = 1;  // on this server
  std::int64_t demand_millicores = 0;
  std::int64_t share_millicores = 0;  // GPU-proportional
};

// Millicores for each job, in the order given, which also decides ties.
// REQUIRES: the shares fit into capacity_millicores together
std::vector<std::int64_t> synergy_tune(const std::vector<SynergyJob>& jobs, std::int64_t capacity_millicores);

}  // namespace sluice::scheduler
