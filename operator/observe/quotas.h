// The room that the ResourceQuotas of the jobs' namespaces leave for data workers.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/api/limit_range.h"
#include "operator/config.h"
#include "scheduler/model/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// The CPU that data workers of a namespace hold, and what another one would take.
struct HeldByWorkers {
  std::int64_t millicores = 0;                   // of pods that have not finished
  std::vector<api::ContainerResources> workers;  // one of each of the namespace's jobs
  std::set<std::string> priority_classes = {};   // of these workers
};

// One per namespace that has jobs and a bound. A bound is a budget, a cap, or a quota of pods, CPU or memory, by
// requests or by limits. A quota whose scopes leave out the workers of all jobs is none. Several quotas count by
// the tightest. Every bound is counted in CPU requests, by the job whose worker takes most of it per core, so that it
// is never exceeded.
std::vector<scheduler::Quota> view_quotas(const kube::Store::Objects& resource_quotas,
                                          const std::map<std::string, HeldByWorkers>& held,
                                          const std::map<std::string, double>& budgets,
                                          const std::map<std::string, control::NamespaceCaps>& caps);

}  // namespace sluice::observe
