#include "scheduler/simulator/report/lower_bound.h"

#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

namespace sluice::simulator {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::max();
// The finer time is cut, the closer the bound, and the longer the solver takes: much more than in proportion. A list of
// thousands of jobs gets a coarser cut, whose bound holds as well.
constexpr int kTimeSlicesMost = 120;
constexpr int kTimeSlicesLeast = 12;
constexpr int kJobsTimesSlices = 48'000;

struct TimeSlice {
  double begin = 0;
  double end = 0;
};

// Equal numbers of arrivals while jobs arrive, then growing lengths: what happens early weighs on many jobs.
std::vector<TimeSlice> time_slices(const Workload& workload, double horizon_seconds) {
  const int jobs = static_cast<int>(workload.size());
  const int count = std::clamp(kJobsTimesSlices / jobs, kTimeSlicesLeast, kTimeSlicesMost);
  std::vector<double> edges = {0};
  const std::size_t step = std::max(1, jobs / (count / 2));
  for (std::size_t i = 0; i < workload.size(); i += step) edges.push_back(workload[i].arrival_seconds);
  const double last = workload.back().arrival_seconds;
  double length = std::max(60.0, last / count);
  for (double at = last; at < horizon_seconds; at += length, length *= 1 + 6.0 / count) edges.push_back(at);
  edges.push_back(horizon_seconds);
  for (double at = 0; at < last; at += std::max(60.0, 2 * last / count)) edges.push_back(at);
  std::sort(edges.begin(), edges.end());
  std::vector<TimeSlice> found;
  for (std::size_t i = 1; i < edges.size(); ++i)
    if (edges[i] - edges[i - 1] > 1e-3) found.push_back({edges[i - 1], edges[i]});
  return found;
}

// The programme, column by column, as CLP wants it.
struct Columns {
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> rows;
  std::vector<double> values;
  std::vector<double> lower, upper, objective;

  void entry(int row, double value) {
    rows.push_back(row);
    values.push_back(value);
  }
  void end(double low, double high, double cost) {
    starts.push_back(static_cast<CoinBigIndex>(rows.size()));
    lower.push_back(low);
    upper.push_back(high);
    objective.push_back(cost);
  }
};

// The least cores per GPU that the job's samples ever cost.
double least_knee(const JobSpec& job, const Physics& physics, std::uint64_t seed, int index) {
  double least = 1;
  if (physics.cost_change > 0) {
    const int stretches = static_cast<int>(job.ideal_seconds / physics.cost_change_seconds) + 1;
    for (int n = 0; n <= stretches; ++n) least = std::min(least, cost_factor(physics, seed, index, n));
  }
  return job.knee_cores_per_gpu * least;
}

}  // namespace

Result<double> least_mean_completion(const Cluster& cluster, const Workload& workload, std::uint64_t seed,
                                     double horizon_seconds) {
  const std::vector<TimeSlice> time = time_slices(workload, horizon_seconds);
  const int jobs = static_cast<int>(workload.size()), slots = static_cast<int>(time.size());
  // Rows: work of each job, GPUs and cores of each time slice (both in seconds of the whole cluster), ends of each job.
  const int work = 0, gpus = jobs, cores = jobs + slots, ends = jobs + 2 * slots, rows = ends + jobs;
  std::vector<double> low(rows, -kInfinity), high(rows, kInfinity);
  const double all_cores = cluster.effective_cores();
  for (int k = 0; k < slots; ++k) high[gpus + k] = high[cores + k] = time[k].end - time[k].begin;
  Columns columns;
  for (int i = 0; i < jobs; ++i) {
    const JobSpec& job = workload[i];
    const double knee = least_knee(job, cluster.physics, seed, i);
    low[work + i] = high[work + i] = job.ideal_seconds;
    low[ends + i] = job.ideal_seconds / 2;
    for (int k = 0; k < slots; ++k) {
      const double begin = std::max(time[k].begin, job.arrival_seconds);
      if (begin >= time[k].end) continue;
      columns.entry(work + i, 1);
      columns.entry(gpus + k, static_cast<double>(job.gpus) / cluster.gpus());
      columns.entry(cores + k, knee * job.gpus / all_cores);
      columns.entry(ends + i, -begin / job.ideal_seconds);
      columns.end(0, time[k].end - begin, 0);
    }
    columns.entry(ends + i, 1);
    columns.end(job.arrival_seconds + job.ideal_seconds, kInfinity, 1.0 / jobs);
  }
  const std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> model(Clp_newModel(), Clp_deleteModel);
  Clp_setLogLevel(model.get(), 0);
  Clp_loadProblem(model.get(), static_cast<int>(columns.objective.size()), rows, columns.starts.data(),
                  columns.rows.data(), columns.values.data(), columns.lower.data(), columns.upper.data(),
                  columns.objective.data(), low.data(), high.data());
  Clp_dual(model.get(), 0);
  if (Clp_status(model.get()) != 0)
    return internal_error("the solver gave up on the lower bound, status " + std::to_string(Clp_status(model.get())));
  double arrivals = 0;
  for (const JobSpec& job : workload) arrivals += job.arrival_seconds;
  return Clp_objectiveValue(model.get()) - arrivals / jobs;
}

}  // namespace sluice::simulator
