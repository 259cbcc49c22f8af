// What Prometheus says about all jobs: a constant number of queries, whatever the number of jobs.
//
// A missing metric is never zero: a job without data, with NaN, or with an ambiguous answer has no measurement but a
// reason; when one query fails, all jobs have the same reason.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "operator/config.h"
#include "scheduler/snapshot.h"
#include "src/prom/client.h"

namespace sluice::observe {

struct Observations {
  std::map<scheduler::JobId, scheduler::Observation> jobs;
  std::string missing_reason;  // for the jobs that are not in the map

  scheduler::Observation of(const scheduler::JobId& job) const;
};

// Answers one query; prom::Client::query in production.
using QueryFunction = std::function<Result<prom::InstantVector>(const std::string& expression, std::stop_token stop)>;

// Thread safety: const methods may be called from any thread.
class PrometheusSource {
 public:
  PrometheusSource(QueryFunction query, const control::MetricsSource& config);

  // One round. The first query that fails ends it: a server that is down costs one time-out, not nine.
  Observations observe(std::stop_token stop) const;

 private:
  QueryFunction query_;
  control::MetricsSource config_;
};

}  // namespace sluice::observe
