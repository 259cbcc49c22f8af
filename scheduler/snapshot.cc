#include "scheduler/snapshot.h"

#include <numeric>

namespace sluice::scheduler {

std::int64_t local_limit_millicores(const Job& job) {
  return std::accumulate(job.hosts.begin(), job.hosts.end(), std::int64_t{0},
                         [](std::int64_t sum, const TrainerHost& host) { return sum + host.limit_millicores; });
}

}  // namespace sluice::scheduler
