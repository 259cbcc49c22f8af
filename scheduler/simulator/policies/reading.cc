#include "scheduler/simulator/policies/reading.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace sluice::scheduler {
namespace {

// No trainer and no core does more than this.
constexpr double kMostSamplesPerSecond = 1e15;

bool are_figures(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value) && value >= 0; });
}

bool are_figures(const std::optional<SourceRate>& source) {
  return !source || are_figures({source->samples_per_second, source->busy_cores});
}

// Samples/s for each unit of the executors' work; none where that is no rate.
std::optional<double> rate(double samples_per_second, double done_in) {
  const double rate = samples_per_second / done_in;
  if (rate > 0 && rate < kMostSamplesPerSecond) return rate;
  return std::nullopt;
}

std::optional<double> rate(const std::optional<SourceRate>& source) {
  return source ? rate(source->samples_per_second, source->busy_cores) : std::nullopt;
}

}  // namespace

const Measurement* usable_measurement(const Job& job) {
  if (!job.observation.measurement) return nullptr;
  const Measurement& m = *job.observation.measurement;
  const bool usable =
      are_figures({m.window_end_seconds, m.window_seconds, m.samples_per_second, m.compute_share, m.wait_share}) &&
      are_figures(m.local) && are_figures(m.remote) && (!m.queue || are_figures({m.queue->depth, m.queue->capacity}));
  return usable ? &m : nullptr;
}

std::optional<Reading> read(const Job& job) {
  const Measurement* m = usable_measurement(job);
  const std::optional<double> demand = m != nullptr ? rate(m->samples_per_second, m->compute_share) : std::nullopt;
  if (!demand) return std::nullopt;
  return Reading{*demand, rate(m->local), rate(m->remote)};
}

double local_capacity(const Job& job, const Reading& reading) {
  return *reading.local_rate_per_core * static_cast<double>(local_limit_millicores(job)) / 1000;
}

double worker_capacity(const Job& job, const Reading& reading) {
  return *reading.remote_rate_per_core * static_cast<double>(job.worker_millicores) / 1000;
}

int ready_workers(const Job& job) {
  return static_cast<int>(std::count_if(job.workers.begin(), job.workers.end(),
                                        [](const Worker& worker) { return worker.ready && !worker.draining; }));
}

int whole_count(double count) {
  constexpr double kMost = 1'000'000;
  return count > 0 ? static_cast<int>(std::ceil(std::min(count, kMost))) : 0;
}

}  // namespace sluice::scheduler
