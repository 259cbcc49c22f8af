#include "operator/observe/quotas.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "operator/api/resource_quota.h"

namespace sluice::observe {
namespace {

using api::ContainerResources;
using Bound = std::optional<std::int64_t>;

constexpr double kMostMillicores = 1e15;  // more than any cluster has

void tighten(Bound& bound, std::int64_t by) { bound = std::min(bound.value_or(by), by); }

// The CPU requests of as many workers as `left` has room for, at `needed` each.
std::int64_t requests_within(std::int64_t left, const ContainerResources& worker, std::int64_t needed) {
  const double millicores =
      static_cast<double>(left) * static_cast<double>(worker.request_millicores) / static_cast<double>(needed);
  return static_cast<std::int64_t>(std::min(millicores, kMostMillicores));
}

// A bound on a resource, expressed in CPU requests of workers. None: no worker asks for the resource.
Bound in_millicores(std::int64_t left, const std::vector<ContainerResources>& workers,
                    std::int64_t ContainerResources::*needed) {
  Bound bound;
  for (const ContainerResources& worker : workers)
    if (worker.*needed > 0) tighten(bound, requests_within(left, worker, worker.*needed));
  return bound;
}

// The tightest bound of one quota; none: it bounds no worker.
Bound left_by(const api::ResourceQuota& quota, const std::vector<ContainerResources>& workers) {
  Bound bound = quota.left_millicores();
  const std::pair<Bound, std::int64_t ContainerResources::*> others[] = {
      {quota.left_memory_bytes(), &ContainerResources::request_memory_bytes},
      {quota.left_limit_millicores(), &ContainerResources::limit_millicores},
      {quota.left_limit_memory_bytes(), &ContainerResources::limit_memory_bytes}};
  for (const auto& [left, needed] : others)
    if (left)
      if (const Bound millicores = in_millicores(*left, workers, needed)) tighten(bound, *millicores);
  if (const auto pods = quota.left_pods())
    for (const ContainerResources& worker : workers) tighten(bound, requests_within(*pods, worker, 1));
  return bound;
}

}  // namespace

std::vector<scheduler::Quota> view_quotas(const kube::Store::Objects& resource_quotas,
                                          const std::map<std::string, HeldByWorkers>& held,
                                          const std::map<std::string, double>& budgets,
                                          const std::map<std::string, control::NamespaceCaps>& caps) {
  std::map<std::string, Bound> left;
  for (const auto& [key, object] : resource_quotas) {
    const auto in_namespace = held.find(key.namespace_);
    if (in_namespace == held.end()) continue;
    const api::ResourceQuota quota(*object);
    const auto counts = [&](const std::string& name) { return quota.counts_workers(name); };
    const std::set<std::string>& classes = in_namespace->second.priority_classes;
    if (!classes.empty() && std::none_of(classes.begin(), classes.end(), counts)) continue;
    if (const Bound bound = left_by(quota, in_namespace->second.workers)) tighten(left[key.namespace_], *bound);
  }
  std::vector<scheduler::Quota> quotas;
  for (const auto& [name, held_there] : held) {
    if (const auto cap = caps.find(name); cap != caps.end() && cap->second.worker_cores)
      tighten(left[name], std::llround(1000 * *cap->second.worker_cores) - held_there.millicores);
    const auto millicores = left.find(name);
    const auto budget = budgets.find(name);
    if (millicores == left.end() && budget == budgets.end()) continue;
    scheduler::Quota quota;
    quota.name = name;
    if (millicores != left.end()) quota.worker_millicores = *millicores->second + held_there.millicores;
    if (budget != budgets.end()) quota.budget_per_hour = budget->second;
    quotas.push_back(std::move(quota));
  }
  return quotas;
}

}  // namespace sluice::observe
