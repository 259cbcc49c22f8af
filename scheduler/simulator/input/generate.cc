#include <algorithm>
#include <cmath>

#include "scheduler/simulator/input/scenario.h"
#include "scheduler/simulator/world/random.h"

namespace sluice::simulator {
namespace {

template <typename K>
const K& drawn(const std::map<K, double>& weights, double draw) {
  double total = 0;
  for (const auto& [key, weight] : weights) total += weight;
  double left = draw * total;
  for (const auto& [key, weight] : weights) {
    left -= weight;
    if (left < 0) return key;
  }
  return weights.rbegin()->first;
}

// Gavel's law (OSDI'20): most jobs short, some long.
double drawn_seconds(double divisor, std::uint64_t seed, std::uint64_t job) {
  const bool is_long = uniform({seed, Draw::kDuration, job, 0}) < 0.2;
  const double draw = uniform({seed, Draw::kDuration, job, 1});
  return 60 * std::pow(10, is_long ? 3 + draw : 1.5 + 1.5 * draw) / divisor;
}

// Times between arrivals with mean 1: hyperexponential with balanced means, exponential at burstiness 1.
double drawn_gap(double burstiness, std::uint64_t seed, std::uint64_t job) {
  const double gap = exponential({seed, Draw::kArrival, job, 0});
  const double square = burstiness * burstiness;
  const double p = (1 + std::sqrt((square - 1) / (square + 1))) / 2;
  const bool quick = uniform({seed, Draw::kArrival, job, 1}) < p;
  return gap / (2 * (quick ? p : 1 - p));
}

}  // namespace

Result<Workload> generate(const Recipe& recipe, int cluster_gpus, const Profiles& profiles, std::uint64_t seed) {
  Workload jobs(static_cast<std::size_t>(recipe.jobs));
  double gpu_seconds = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    JobSpec& job = jobs[i];
    job.name = "job-" + std::to_string(i + 1);
    job.gpus = drawn(recipe.gpus, uniform({seed, Draw::kGpus, i, 0}));
    job.ideal_seconds = drawn_seconds(recipe.duration_divisor, seed, i);
    const std::string& model = drawn(recipe.models, uniform({seed, Draw::kModel, i, 0}));
    const auto profile = profiles.find(model);
    if (profile == profiles.end()) return invalid_argument("there is no profile \"" + model + "\"");
    job.knee_cores_per_gpu = profile->second.knee_cores_per_gpu * recipe.knee_factor *
                             std::exp(recipe.knee_spread * normal({seed, Draw::kKnee, i, 0}));
    job.network_gbps_per_gpu = profile->second.network_gbps_per_gpu * recipe.knee_factor;
    gpu_seconds += job.gpu_seconds();
  }
  // Jobs arrive as fast as makes up the load on average.
  const double mean_gap = gpu_seconds / recipe.jobs / cluster_gpus / recipe.load;
  double now = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    jobs[i].arrival_seconds = now += mean_gap * drawn_gap(recipe.burstiness, seed, i);
  return jobs;
}

}  // namespace sluice::simulator
