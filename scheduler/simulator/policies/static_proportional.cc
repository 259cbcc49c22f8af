#include "scheduler/simulator/policies/static_proportional.h"

#include "scheduler/simulator/policies/job_by_job.h"

namespace sluice::scheduler {
namespace {

struct Proportional {
  Request request(const Job& /*job*/, const Scene& /*scene*/) const { return {}; }
};

}  // namespace

std::unique_ptr<Policy> make_static_proportional_policy() {
  return std::make_unique<JobByJobPolicy<Proportional>>("static", Turns::kOneEach, [] { return Proportional{}; });
}

}  // namespace sluice::scheduler
