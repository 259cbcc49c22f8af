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
//   read bytes per sample           absent or unusable: they are not known, and no storage bounds the job
//   blocked threads                 absent or unusable: they are not known, and nothing is said of storage
//   memory of workers               absent or unusable: it is not known, and no worker gets another size
//   remaining samples               absent or unusable: the end of the job is not known
//   scrapes in the window           absent or unusable: the window stays as it is
//   bytes kept by nodes' caches     absent or unusable: they are not known, and no node is better for them
// Unusable is a value that is NaN, infinite, negative, evaluated a window before the others, or one of several for the
// job. A query that fails makes its figure unusable for all jobs, and costs no other figure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/config.h"
#include "operator/observe/kept_data.h"
#include "operator/observe/query_round.h"
#include "operator/observe/scrape_window.h"
#include "scheduler/model/snapshot.h"
#include "src/base/clock.h"

namespace sluice::observe {

struct Observations {
  std::map<scheduler::JobId, scheduler::Observation> jobs;
  std::string missing_reason;  // for the jobs that are not in the map
  std::string problem;         // the first query that failed, and why; empty: all were answered

  // That the jobs' pods are scraped too rarely for the configured window, and the way out; empty: often enough.
  std::string rare_scrapes;

  // When the newest answer was made, by Prometheus's clock, as all times here are; nullopt: nothing was answered.
  std::optional<double> answered_at_seconds;

  std::map<scheduler::JobId, double> bytes_per_sample;     // of the jobs whose samples have a known size
  std::map<scheduler::JobId, double> worker_memory_bytes;  // the most that one data worker of the job used
  std::map<scheduler::JobId, double> remaining_samples;    // of the jobs that say how many they will still take

  KeptByCaches kept;  // for all jobs, by the nodes' caches

  // Moves all times by so much, to another clock.
  void move_times(double seconds);

  scheduler::Observation of(const scheduler::JobId& job) const;
  std::optional<double> bytes_per_sample_of(const scheduler::JobId& job) const;
  std::optional<double> worker_memory_bytes_of(const scheduler::JobId& job) const;
  std::optional<double> remaining_samples_of(const scheduler::JobId& job) const;
};

// Thread safety: none; but queries may be under way on several threads.
class PrometheusSource {
 public:
  // REQUIRES: `clock` outlives the source.
  PrometheusSource(QueryFunction query, const control::MetricsSource& config, const Clock& clock);

  // From now on so many queries are under way at a time; until then one, on the caller's thread. REQUIRES: `query` may
  // be called from several threads at once; no round is under way.
  void ask_at_once(int queries) { at_once_ = queries; }

  // One round. It ends within kRoundLimit.
  Observations observe(std::stop_token stop);

  // Of the next round's queries.
  int window_seconds() const { return window_.seconds(); }

 private:
  QueryFunction query_;
  control::MetricsSource config_;
  const Clock& clock_;
  ScrapeWindow window_;
  int at_once_ = 1;
};

}  // namespace sluice::observe
