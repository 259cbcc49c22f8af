// What the caches of nodes have kept for jobs, as they say it in Prometheus (docs/metrics.md,
// sluice_cache_node_kept_bytes).
//
// A job is known there by a number, and so is the data set that it has announced. What one job has had kept, another
// one of the same data set finds. So of a node counts the most that its cache has for any such job. A series counts if
// its pod is in the operator's own namespace, as the caches are: other pods may say anything. A value that is NaN,
// infinite or negative is not known. Thread safety: values.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/model/snapshot.h"
#include "src/prom/client.h"

namespace sluice::observe {

class KeptByCaches {
 public:
  KeptByCaches() = default;  // nothing is known
  KeptByCaches(const prom::InstantVector& answer, const std::string& namespace_label, const std::string& own_namespace);

  // In the order of the nodes' names.
  std::vector<scheduler::KeptData> of(const scheduler::JobId& job) const;

 private:
  struct Asker {
    std::map<std::string, double> bytes_by_node;
    std::set<std::string> data_sets;
  };
  std::map<std::string, Asker> askers_;                       // by the job's number
  std::map<std::string, std::set<std::string>> by_data_set_;  // the numbers of the jobs that have announced it
};

}  // namespace sluice::observe
