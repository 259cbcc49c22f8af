// The figures by which policies are compared, and the bound of the gain.
//
// GPU utilisation has two meanings, and both are always named. "Allocated" is busy over allocated GPU time, which a
// job's owner sees. "Wall" is busy over all GPU time of the cluster until the last job arrives, which the cluster's
// owner sees. (After that the cluster drains, and one long job would decide the figure. Where all jobs arrive at once,
// it is from then until the last one ends.)
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <string_view>

#include "scheduler/simulator/world/engine.h"

namespace sluice::simulator {

enum class Figure {
  kAllocatedUtilisation,
  kWallUtilisation,
  kMeanJct,
  kMedianJct,
  kP99Jct,
  kMakespan,
  kCoreHours,
  kCost,
  // Of running times, without the wait for GPUs: the order of the queue is no merit of a policy, and no fault.
  kP99Slowdown,         // running time over that without stalls, 99th percentile of the jobs
  kWorstAgainstStatic,  // the largest running time over the same job's under `static`
  kHarmed,              // share of jobs that run more than 5 % + 60 s longer than under `static`
  kWorkersStarted,      // that found a node
  kChurn,               // changes of a job's number of workers per hour of its run
};
inline constexpr std::size_t kFigures = 13;

struct FigureText {
  std::string_view key;    // in JSON
  std::string_view title;  // in tables
  std::string_view unit;   // "s", "core-h", "%", "$", "x", "" (a count)
};
const FigureText& text_of(Figure figure);

using Figures = std::array<double, kFigures>;

inline double& at(Figures& figures, Figure figure) { return figures[static_cast<std::size_t>(figure)]; }
inline double at(const Figures& figures, Figure figure) { return figures[static_cast<std::size_t>(figure)]; }

// `baseline`: the same workload under `static`.
Figures figures_of(const RunRecord& run, const RunRecord& baseline, const Workload& workload, const Cluster& cluster);

double completion_seconds(const RunRecord& run, const Workload& workload, std::size_t job);

// The most that any policy can gain over a GPU-proportional split of the hosts' CPU; weighted by work.
struct Bound {
  double mean_slowdown = 1;    // E[s]: no policy gains more allocated utilisation than this
  double mean_knee = 0;        // E[kappa], cores per GPU
  double effective_cores = 0;  // C_eff: local-equivalent cores per GPU, remote ones included
  double when_full = 1;        // min(E[s], C_eff E[s] / E[kappa]): the gain while every GPU is allocated
  double best_single_job = 1;  // kappa_max / c
};
// c is that of the hosts that have least, as their CPU adds up, with feeders of fixed CPU as they are.
Bound bound_of(const Workload& workload, const Cluster& cluster);

// The jobs cut where the cost of their samples changes, so that each piece has one knee: what bound_of() wants of a
// scenario with cost_change.
Workload pieces_of(const Workload& workload, const Physics& physics, std::uint64_t seed);

}  // namespace sluice::simulator
