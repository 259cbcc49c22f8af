#include "scheduler/simulator/policies/burst.h"

#include <algorithm>

#include "scheduler/simulator/policies/job_by_job.h"

namespace sluice::scheduler {
namespace {

struct Unlimited {
  Request request(const Job& job, const Scene& scene) const {
    std::vector<LocalCpu> local = gpu_proportional(job, scene.nodes);
    for (LocalCpu& cpu : local) {
      const Node* node = scene.nodes.find(cpu.node);
      if (node != nullptr) cpu.limit_millicores = std::max(cpu.request_millicores, node->allocatable_millicores);
    }
    return {.local = std::move(local)};
  }
};

}  // namespace

std::unique_ptr<Policy> make_burst_policy() {
  return std::make_unique<JobByJobPolicy<Unlimited>>("burst", Turns::kOneEach, [] { return Unlimited{}; });
}

}  // namespace sluice::scheduler
