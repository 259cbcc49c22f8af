#include "scheduler/simulator/policies/tfdata.h"

#include <algorithm>

#include "scheduler/simulator/policies/job_by_job.h"
#include "scheduler/simulator/policies/reading.h"
#include "scheduler/simulator/policies/tfdata_formula.h"

namespace sluice::scheduler {
namespace {

class TfDataController {
 public:
  Request request(const Job& job, const Scene& /*scene*/) {
    if (const std::optional<Reading> reading = read(job)) follow(job, *reading);
    return {.workers = workers_};
  }

 private:
  void follow(const Job& job, const Reading& reading) {
    if (!reading.remote_rate_per_core) return;
    const double local = reading.local_rate_per_core ? local_capacity(job, reading) : 0;
    const double consumed = std::max(0.0, reading.demand_samples_per_second - local);
    // The metrics are those of the job: its ranks consume alike, and its workers deliver alike.
    const int ranks = std::max(1, job.ranks);
    const std::vector<double> rates(ranks, consumed / ranks);
    const std::vector<double> throughputs(std::max(1, ready_workers(job)), worker_capacity(job, reading));
    workers_ = tfdata_optimal_workers(rates, throughputs).value_or(workers_);
  }

  int workers_ = 1;  // the service has at least one, which is also what there is to measure
};

}  // namespace

std::unique_ptr<Policy> make_tfdata_policy() {
  return std::make_unique<JobByJobPolicy<TfDataController>>("tfdata", Turns::kOneEach,
                                                            [] { return TfDataController(); });
}

}  // namespace sluice::scheduler
