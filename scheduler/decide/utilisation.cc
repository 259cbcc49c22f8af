#include "scheduler/decide/utilisation.h"

#include <algorithm>
#include <vector>

#include "scheduler/model/progress.h"

namespace sluice::scheduler {
namespace {

struct Measured {
  double weight = 1;
  double own_supply = 0;      // supply / demand of the feeders alone
  double planned_supply = 0;  // with the planned workers
  double per_core = 0;        // what a core of a data worker adds to it
  double cores_at_most = 0;   // of data workers that it may hold and could use
};

Measured measured_of(const Job& job, const JobPlan& plan) {
  const Estimate& e = plan.estimate;
  Measured m;
  m.weight = std::max(1, job.gpus);
  m.per_core = e.efficiency() / e.knee_cores;
  m.planned_supply = plan.planned_supply_ratio;
  const double worker_cores = static_cast<double>(job.worker_millicores) / 1000;
  m.own_supply = std::max(0.0, m.planned_supply - m.per_core * plan.recommended * worker_cores);
  const int workers_at_most =
      job.placement == Placement::kLocal ? plan.recommended : std::max(job.max_workers, plan.recommended);
  if (m.per_core > 0)
    m.cores_at_most = std::min(std::max(0.0, 1 - m.own_supply) / m.per_core, worker_cores * workers_at_most);
  return m;
}

// Full speed up to the knee, as if it had no soft edges, and cores that can be cut at will. This is a fractional
// knapsack, and no real division exceeds its optimum.
double most(std::vector<Measured> jobs, double cores) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Measured& a, const Measured& b) { return a.weight * a.per_core > b.weight * b.per_core; });
  double sum = 0;
  for (const Measured& m : jobs) {
    const double given = std::min(cores, m.cores_at_most);
    cores -= given;
    sum += m.weight * std::min(1.0, m.own_supply + m.per_core * given);
  }
  return sum;
}

}  // namespace

Utilisation utilisation_of(const ClusterSnapshot& snapshot, const Plan& plan, const Config& config) {
  const std::vector<const Job*> jobs = jobs_by_id(snapshot);
  std::vector<Measured> measured;
  double weights = 0, own = 0, planned = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = *jobs[i];
    const JobPlan& job_plan = plan.jobs[i];
    const Estimate& e = job_plan.estimate;
    if (!job.running || e.confidence == Confidence::kNone || e.knee_cores < kLeastKneeCores) continue;
    const Measured& m = measured.emplace_back(measured_of(job, job_plan));
    weights += m.weight;
    own += m.weight * progress(m.own_supply, config.softmin_exponent);
    planned += m.weight * progress(m.planned_supply, config.softmin_exponent);
  }
  Utilisation utilisation{.jobs = static_cast<int>(measured.size())};
  if (measured.empty()) return utilisation;
  utilisation.on_own_cpu = own / weights;
  utilisation.planned = planned / weights;
  // Advice to a job in mode Recommend takes no CPU from the others' plans, so that all of it together may exceed the
  // room.
  utilisation.at_most =
      std::max(planned, most(std::move(measured), static_cast<double>(plan.capacity_millicores) / 1000)) / weights;
  return utilisation;
}

}  // namespace sluice::scheduler
