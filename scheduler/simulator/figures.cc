#include "scheduler/simulator/figures.h"

#include <algorithm>

#include "scheduler/simulator/statistics.h"

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
  double last_arrival = 0, busy_while_arriving = 0;
  double busy = 0, allocated = 0, core_seconds = 0, workers = 0, changes = 0, job_hours = 0, harmed = 0, worst = 0;
  std::vector<double> completion, slowdown;
  for (std::size_t i = 0; i < workload.size(); ++i) {
    const JobRecord& job = run.jobs[i];
    busy += job.busy_gpu_seconds;
    last_arrival = std::max(last_arrival, workload[i].arrival_seconds);
    busy_while_arriving += job.busy_gpu_seconds_while_arriving;
    allocated += job.allocated_gpu_seconds;
    core_seconds += job.core_seconds;
    workers += job.workers_started;
    changes += job.allocation_changes;
    job_hours += job.allocated_gpu_seconds / workload[i].gpus / 3600;
    completion.push_back(completion_seconds(run, workload, i));
    const double running = job.finish_seconds - job.start_seconds;
    const double before = baseline.jobs[i].finish_seconds - baseline.jobs[i].start_seconds;
    slowdown.push_back(running / workload[i].ideal_seconds);
    worst = std::max(worst, running / before);
    if (running > 1.05 * before + 60) ++harmed;
  }
  const Physics& physics = cluster.physics;
  Figures figures{};
  at(figures, Figure::kAllocatedUtilisation) = busy / allocated;
  at(figures, Figure::kWallUtilisation) = last_arrival > 0 ? busy_while_arriving / (cluster.gpus() * last_arrival)
                                                           : busy / (cluster.gpus() * run.makespan_seconds);
  at(figures, Figure::kMeanJct) = mean(completion);
  at(figures, Figure::kMedianJct) = percentile(completion, 0.5);
  at(figures, Figure::kP99Jct) = percentile(completion, 0.99);
  at(figures, Figure::kMakespan) = run.makespan_seconds;
  at(figures, Figure::kCoreHours) = core_seconds / 3600;
  at(figures, Figure::kCost) =
      (allocated * physics.gpu_price_per_hour + core_seconds * physics.core_price_per_hour) / 3600;
  at(figures, Figure::kP99Slowdown) = percentile(slowdown, 0.99);
  at(figures, Figure::kWorstAgainstStatic) = worst;
  at(figures, Figure::kHarmed) = harmed / static_cast<double>(workload.size());
  at(figures, Figure::kWorkersStarted) = workers;
  at(figures, Figure::kChurn) = job_hours > 0 ? changes / job_hours : 0;
  return figures;
}

Bound bound_of(const Workload& workload, const Cluster& cluster) {
  const double c = cluster.cores_per_gpu();
  Bound bound;
  double work = 0, slowdown = 0, knee = 0, knee_most = 0;
  for (const JobSpec& job : workload) {
    work += job.gpu_seconds();
    // With soft edges: 1 / progress(c / kappa) instead of max(1, kappa / c).
    slowdown += job.gpu_seconds() / progress(c / job.knee_cores_per_gpu, cluster.physics.softmin_exponent);
    knee += job.gpu_seconds() * job.knee_cores_per_gpu;
    knee_most = std::max(knee_most, job.knee_cores_per_gpu);
  }
  bound.mean_slowdown = slowdown / work;
  bound.mean_knee = knee / work;
  bound.effective_cores =
      c + cluster.physics.remote_efficiency * (cluster.cores() - cluster.gpu_host_cores()) / cluster.gpus();
  bound.when_full =
      std::max(1.0, std::min(bound.mean_slowdown, bound.effective_cores * bound.mean_slowdown / bound.mean_knee));
  bound.best_single_job = std::max(1.0, knee_most / c);
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
