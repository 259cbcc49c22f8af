#include "src/cache/policies/testing/shared_workload.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace sluice::cache::testing {
namespace {

struct TimedUse {
  double time = 0;
  SharedUse use;
};

// Of its own: what the standard library makes of a seed is not the same everywhere.
void shuffle(std::vector<std::uint32_t>& numbers, std::mt19937& random) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
}

std::size_t first_at(const std::vector<TimedUse>& uses, double time) {
  const auto found =
      std::lower_bound(uses.begin(), uses.end(), time, [](const TimedUse& use, double t) { return use.time < t; });
  return static_cast<std::size_t>(found - uses.begin());
}

}  // namespace

SharedWorkload workload_of(std::uint32_t samples, const std::vector<SimulatedJob>& jobs, std::uint32_t seed) {
  SharedWorkload workload;
  workload.samples = samples;
  workload.bytes.assign(samples, 1);
  std::mt19937 random(seed);
  std::vector<std::uint32_t> all(samples);
  std::iota(all.begin(), all.end(), 0U);
  std::vector<TimedUse> timed;
  double warm = 0;
  double first_end = 1e300;
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    const SimulatedJob& spec = jobs[job];
    std::vector<std::uint32_t> order = spec.samples.empty() ? all : spec.samples;
    const std::size_t length = order.size() / spec.ranks;
    double time = spec.begins;
    warm = std::max(warm, time + static_cast<double>(length) / spec.speed);
    workload.orders.emplace_back();
    for (std::uint32_t epoch = 0; epoch < spec.epochs; ++epoch) {
      shuffle(order, random);
      std::vector<std::uint32_t>& own = workload.orders.back().emplace_back();
      for (std::uint32_t position = 0; position < length; ++position, time += 1 / spec.speed) {
        own.push_back(order[position * spec.ranks]);
        timed.push_back({time, {job, epoch, position, own.back()}});
      }
    }
    first_end = std::min(first_end, time);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const TimedUse& a, const TimedUse& b) { return a.time < b.time; });
  workload.counted_to = first_at(timed, first_end);
  workload.counted_from = std::min(first_at(timed, warm), workload.counted_to);
  for (const TimedUse& use : timed) workload.uses.push_back(use.use);
  return workload;
}

SharedWorkload jobs_out_of_phase(std::uint32_t samples, std::uint32_t jobs, std::uint32_t epochs, std::uint32_t seed) {
  std::vector<SimulatedJob> specs(jobs);
  for (std::uint32_t job = 0; job < jobs; ++job) {
    specs[job].begins = static_cast<double>(samples) * job / jobs;
    specs[job].epochs = epochs;
  }
  return workload_of(samples, specs, seed);
}

}  // namespace sluice::cache::testing
