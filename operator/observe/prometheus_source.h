// The measurements of all jobs from Prometheus. The number of queries does not grow with the number of jobs.
//
// A series belongs to the namespace that the scrape gives to its pod (metrics.namespaceLabel). The job_namespace that
// the pod says of itself does not count: a tenant cannot speak for the jobs of another.
//
// A missing metric is never zero. The effect of each answer on a job's measurement:
//   samples, shares, batches, age   absent, unusable: no measurement, but a reason
//   workers' samples and cores      both absent: no such executor has worked; one absent, or unusable: no measurement
//   workers at work                 absent: none, since counting nothing gives no series; unusable: no measurement
//   queue's depth and capacity      either absent or unusable: the queue is not known
//   bytes per sample                absent or unusable: they are not known, and bound no network
//   blocked threads                 absent or unusable: they are not known, and nothing is said of storage
//   memory of workers               absent or unusable: it is not known, and no worker gets another size
//   remaining samples               absent or unusable: the end of the job is not known
// Unusable is a value that is NaN, infinite, negative, evaluated a window before the others, or one of several for the
// job. When one query fails, all jobs have the same reason.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/config.h"
#include "scheduler/model/snapshot.h"
#include "src/prom/client.h"

namespace sluice::observe {

struct Observations {
  std::map<scheduler::JobId, scheduler::Observation> jobs;
  std::string missing_reason;  // for the jobs that are not in the map

  // When the newest answer was made, by Prometheus's clock, as all times here are; nullopt: nothing was answered.
  std::optional<double> answered_at_seconds;

  std::map<scheduler::JobId, double> bytes_per_sample;     // of the jobs whose samples have a known size
  std::map<scheduler::JobId, double> worker_memory_bytes;  // the most that one data worker of the job used
  std::map<scheduler::JobId, double> remaining_samples;    // of the jobs that say how many they will still take

  // Moves all times by so much, to another clock.
  void move_times(double seconds);

  scheduler::Observation of(const scheduler::JobId& job) const;
  std::optional<double> bytes_per_sample_of(const scheduler::JobId& job) const;
  std::optional<double> worker_memory_bytes_of(const scheduler::JobId& job) const;
  std::optional<double> remaining_samples_of(const scheduler::JobId& job) const;
};

// Answers one query; prom::Client::query in production.
using QueryFunction = std::function<Result<prom::InstantVector>(const std::string& expression, std::stop_token stop)>;

// Thread safety: const methods may be called from any thread.
class PrometheusSource {
 public:
  PrometheusSource(QueryFunction query, const control::MetricsSource& config);

  // One round. The first query that fails ends it: a server that is down costs one time-out, not fourteen.
  Observations observe(std::stop_token stop) const;

 private:
  QueryFunction query_;
  control::MetricsSource config_;
};

}  // namespace sluice::observe
