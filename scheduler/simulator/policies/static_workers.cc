#include "scheduler/simulator/policies/static_workers.h"

#include <algorithm>

#include "scheduler/simulator/policies/job_by_job.h"

namespace sluice::scheduler {
namespace {

struct FixedLoaders {
  int per_gpu = 4;

  Request request(const Job& job, const Scene& scene) const {
    std::vector<LocalCpu> local;
    for (const TrainerHost& host : job.hosts) {
      const std::int64_t most = std::int64_t{1000} * per_gpu * host.gpus;
      local.push_back({host.node, std::min(most, scene.nodes.share_millicores(host)), most});
    }
    return {.local = std::move(local)};
  }
};

}  // namespace

std::unique_ptr<Policy> make_static_workers_policy(int loader_processes_per_gpu) {
  return std::make_unique<JobByJobPolicy<FixedLoaders>>(
      "fixed-workers", Turns::kOneEach, [loader_processes_per_gpu] { return FixedLoaders{loader_processes_per_gpu}; });
}

}  // namespace sluice::scheduler
