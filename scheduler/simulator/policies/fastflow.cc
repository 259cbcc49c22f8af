#include "scheduler/simulator/policies/fastflow.h"

#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {
namespace {

class FastFlowController {
 public:
  explicit FastFlowController(const FastFlowConstants& constants) : constants_(constants) {}

  Request request(const Job& job, const Scene& /*scene*/) {
    const std::optional<Reading> reading = read(job);
    if (reading) profile(job, *reading);
    return {.workers = workers_};
  }

 private:
  enum class Phase { kLocalProfile, kRemoteProfile, kDecided };

  void profile(const Job& job, const Reading& reading) {
    if (phase_ == Phase::kLocalProfile && reading.local_rate_per_core) {
      profile_.gpu_samples_per_second = reading.demand_samples_per_second;
      profile_.local_samples_per_second = local_capacity(job, reading);
      const bool offloads = fastflow_offloads(profile_, constants_);
      phase_ = offloads ? Phase::kRemoteProfile : Phase::kDecided;
      workers_ = offloads ? 1 : 0;
    } else if (phase_ == Phase::kRemoteProfile && reading.remote_rate_per_core) {
      profile_.worker_samples_per_second = worker_capacity(job, reading);
      phase_ = Phase::kDecided;
      workers_ = fastflow_workers(profile_, constants_);
    }
  }

  FastFlowConstants constants_;
  FastFlowProfile profile_;
  Phase phase_ = Phase::kLocalProfile;
  int workers_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_fastflow_policy(const FastFlowConstants& constants) {
  return std::make_unique<JobByJobPolicy<FastFlowController>>("fastflow", Turns::kOneEach,
                                                              [=] { return FastFlowController(constants); });
}

}  // namespace sluice::scheduler
