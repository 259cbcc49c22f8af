#include "scheduler/policies/reading.h"

#include <algorithm>

namespace sluice::scheduler {
namespace {

std::optional<double> rate(const std::optional<SourceRate>& source) {
  if (!source || source->busy_cores <= 0 || source->samples_per_second <= 0) return std::nullopt;
  return source->samples_per_second / source->busy_cores;
}

}  // namespace

std::optional<Reading> read(const Job& job) {
  const std::optional<Measurement>& m = job.observation.measurement;
  if (!m || m->samples_per_second <= 0 || m->compute_share <= 0) return std::nullopt;
  return Reading{m->samples_per_second / m->compute_share, rate(m->local), rate(m->remote)};
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

}  // namespace sluice::scheduler
