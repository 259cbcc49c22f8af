#include "scheduler/simulator/report/figures.h"

#include <algorithm>
#include <limits>

#include "scheduler/simulator/report/statistics.h"

namespace sluice::simulator {

const FigureText& text_of(Figure figure) {
  static constexpr std::array<FigureText, kFigures> kTexts = {{
      {"allocated_utilisation", "GPU utilisation, allocated", "%"},
      {"wall_utilisation", "GPU utilisation, wall", "%"},
      {"mean_completion_seconds", "mean JCT", "s"},
      {"median_completion_seconds", "p50 JCT", "s"},
      {"p99_completion_seconds", "p99 JCT", "s"},
      {"makespan_seconds", "makespan", "s"},
      {"core_hours", "CPU, core-hours", "core-h"},
      {"cost_dollars", "cost", "$"},
      {"p99_slowdown", "p99 slowdown", "x"},
      {"worst_against_static", "worst job against static", "x"},
      {"harmed_share", "jobs harmed", "%"},
      {"workers_started", "workers started", ""},
      {"changes_per_job_hour", "changes per job-hour", ""},
  }};
  return kTexts[static_cast<std::size_t>(figure)];
}

double completion_seconds(const RunRecord& run, const Workload& workload, std::size_t job) {
  return run.jobs[job].finish_seconds - workload[job].arrival_seconds;
}

Figures figures_of(const RunRecord& run, const RunRecord& baseline, const Workload& workload, const Cluster& cluster) {
  double first_arrival = workload[0].arrival_seconds, last_arrival = 0, busy_while_arriving = 0;
  const Physics& physics = cluster.physics;
  double busy = 0, allocated = 0, core_seconds = 0, paid_core_seconds = 0, workers = 0, changes = 0, job_hours = 0;
  double harmed = 0, worst = 0;
  std::vector<double> completion, slowdown;
  for (std::size_t i = 0; i < workload.size(); ++i) {
    const JobRecord& job = run.jobs[i];
    busy += job.busy_gpu_seconds;
    first_arrival = std::min(first_arrival, workload[i].arrival_seconds);
    last_arrival = std::max(last_arrival, workload[i].arrival_seconds);
    busy_while_arriving += job.busy_gpu_seconds_while_arriving;
    allocated += job.allocated_gpu_seconds;
    core_seconds += job.core_seconds;
    paid_core_seconds += physics.gpu_price_includes_host ? job.worker_core_seconds : job.core_seconds;
    workers += job.workers_started;
    changes += job.allocation_changes;
    job_hours += job.allocated_gpu_seconds / workload[i].gpus / 3600;
    completion.push_back(completion_seconds(run, workload, i));
    const double running = job.running_seconds(), before = baseline.jobs[i].running_seconds();
    slowdown.push_back(running / workload[i].ideal_seconds);
    worst = std::max(worst, running / before);
    if (running > 1.05 * before + 60) ++harmed;
  }
  Figures figures{};
  at(figures, Figure::kAllocatedUtilisation) = busy / allocated;
  at(figures, Figure::kWallUtilisation) = last_arrival > first_arrival
                                              ? busy_while_arriving / (cluster.gpus() * last_arrival)
                                              : busy / (cluster.gpus() * (run.makespan_seconds - last_arrival));
  at(figures, Figure::kMeanJct) = mean(completion);
  at(figures, Figure::kMedianJct) = percentile(completion, 0.5);
  at(figures, Figure::kP99Jct) = percentile(completion, 0.99);
  at(figures, Figure::kMakespan) = run.makespan_seconds;
  at(figures, Figure::kCoreHours) = core_seconds / 3600;
  at(figures, Figure::kCost) =
      (allocated * physics.gpu_price_per_hour + paid_core_seconds * physics.core_price_per_hour) / 3600;
  at(figures, Figure::kP99Slowdown) = percentile(slowdown, 0.99);
  at(figures, Figure::kWorstAgainstStatic) = worst;
  at(figures, Figure::kHarmed) = harmed / static_cast<double>(workload.size());
  at(figures, Figure::kWorkersStarted) = workers;
  at(figures, Figure::kChurn) = changes / job_hours;
  return figures;
}

namespace {

// c: the supply per GPU of a job's CPU under `static`, on those hosts that could take it and have least.
double static_cores_per_gpu(const JobSpec& job, const Cluster& cluster) {
  double least = std::numeric_limits<double>::infinity();
  for (const NodeGroup& group : cluster.groups) {
    const bool fits = group.gpus >= job.gpus || job.gpus > cluster.most_gpus_per_node();
    if (group.gpus == 0 || !fits) continue;
    const int gpus = std::min(job.gpus, group.gpus);  // of the job on one host
    const double cores = job.local_cores > 0 ? job.local_cores * gpus / job.gpus : group.cores * gpus / group.gpus;
    least = std::min(least, local_supply_cores(cores, cluster.physics) / gpus);
  }
  return least;
}

}  // namespace

Bound bound_of(const Workload& workload, const Cluster& cluster) {
  const Physics& physics = cluster.physics;
  const double trainer = 1 - physics.interference;  // its speed beside neighbours that take all of the host's CPU
  Bound bound;
  double work = 0, slowdown = 0, knee = 0;
  for (const JobSpec& job : workload) {
    const double c = static_cores_per_gpu(job, cluster), kappa = job.knee_cores_per_gpu;
    work += job.gpu_seconds();
    // With soft edges: 1 / progress(c / kappa) instead of max(1, kappa / c).
    slowdown += job.gpu_seconds() / (trainer * progress(c / kappa / trainer, physics.softmin_exponent));
    knee += job.gpu_seconds() * kappa;
    bound.best_single_job = std::max({bound.best_single_job, 1 / trainer, kappa / c});
  }
  bound.mean_slowdown = slowdown / work;
  bound.mean_knee = knee / work;
  bound.effective_cores = cluster.effective_cores() / cluster.gpus();
  bound.when_full =
      std::max(1.0, std::min(bound.mean_slowdown, bound.effective_cores * bound.mean_slowdown / bound.mean_knee));
  return bound;
}

Workload pieces_of(const Workload& workload, const Physics& physics, std::uint64_t seed) {
  if (physics.cost_change <= 0) return workload;
  Workload pieces;
  for (std::size_t i = 0; i < workload.size(); ++i) {
    double left = workload[i].ideal_seconds;
    for (int stretch = 0; left > 0; ++stretch, left -= physics.cost_change_seconds) {
      JobSpec& piece = pieces.emplace_back(workload[i]);
      piece.ideal_seconds = std::min(left, physics.cost_change_seconds);
      piece.knee_cores_per_gpu *= cost_factor(physics, seed, static_cast<int>(i), stretch);
    }
  }
  return pieces;
}

}  // namespace sluice::simulator
