#include "scheduler/simulator/policies/synergy_tune.h"

#include <algorithm>
#include <numeric>

namespace sluice::scheduler {
namespace {

// Cuts jobs above their share back to it, most CPU per GPU first, until so much is free.
void reclaim(const std::vector<SynergyJob>& jobs, std::vector<std::int64_t>& given, std::int64_t& free,
             std::int64_t needed) {
  while (free < needed) {
    std::size_t richest = jobs.size();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (given[i] <= jobs[i].share_millicores) continue;
      if (richest == jobs.size() || given[i] * jobs[richest].gpus > given[richest] * jobs[i].gpus) richest = i;
    }
    if (richest == jobs.size()) return;
    free += given[richest] - jobs[richest].share_millicores;
    given[richest] = jobs[richest].share_millicores;
  }
}

}  // namespace

std::vector<std::int64_t> synergy_tune(const std::vector<SynergyJob>& jobs, std::int64_t capacity_millicores) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (jobs[a].gpus != jobs[b].gpus) return jobs[a].gpus > jobs[b].gpus;
    return jobs[a].demand_millicores > jobs[b].demand_millicores;
  });

  std::vector<std::int64_t> given(jobs.size(), 0);
  std::int64_t free = capacity_millicores;
  for (const std::size_t i : order) {
    std::int64_t grant = jobs[i].demand_millicores;
    if (grant > free) {
      grant = std::min(grant, jobs[i].share_millicores);
      reclaim(jobs, given, free, grant);
      grant = std::min(grant, free);
    }
    given[i] = grant;
    free -= grant;
  }
  for (const std::size_t i : order) {
    const std::int64_t more = std::min(free, std::max<std::int64_t>(0, jobs[i].demand_millicores - given[i]));
    given[i] += more;
    free -= more;
  }
  return given;
}

}  // namespace sluice::scheduler
