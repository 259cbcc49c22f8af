#include "operator/observe/cluster_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/observe/fields.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

bool schedulable(const json& node) {
  if (boolean_field(node, "/spec/unschedulable") || !condition_is_true(node, "Ready")) return false;
  const json& taints = field(node, "/spec/taints");
  if (!taints.is_array()) return true;
  return std::none_of(taints.begin(), taints.end(), [](const json& taint) {
    const std::string effect = text_field(taint, "/effect");
    return effect == "NoSchedule" || effect == "NoExecute";
  });
}

struct PendingTrainer {
  std::string key;
  std::int64_t request = 0;
};

void reserve(std::vector<scheduler::Node>& nodes, std::vector<PendingTrainer> pending) {
  std::sort(pending.begin(), pending.end(), [](const PendingTrainer& a, const PendingTrainer& b) {
    return a.request != b.request ? a.request > b.request : a.key < b.key;
  });
  const auto room = [](const scheduler::Node& node) {
    return node.schedulable ? node.allocatable_millicores - node.requested_by_others_millicores : 0;
  };
  for (const PendingTrainer& trainer : pending) {
    const auto widest =
        std::max_element(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return room(a) < room(b); });
    if (widest != nodes.end() && room(*widest) >= trainer.request)
      widest->requested_by_others_millicores += trainer.request;
  }
}

}  // namespace

std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const PodViews::Entries& pods,
                                        const std::set<std::string>& known_pools, int cpu_percent) {
  std::map<std::string, std::int64_t> reserved;
  std::vector<PendingTrainer> pending;
  for (const auto& [key, entry] : pods) {
    const PodView& pod = entry.view;
    if (pod.finished || known_pools.contains(pod.controller_uid)) continue;
    if (!pod.node.empty())
      reserved[pod.node] += pod.request_millicores;
    else if (pod.is_trainer && !pod.leaving)
      pending.push_back({key.to_string(), pod.request_millicores});
  }
  std::vector<scheduler::Node> view;
  for (const auto& [key, node] : nodes)
    view.push_back(
        {key.name, millicores_field(*node, "/status/allocatable/cpu"), reserved[key.name], schedulable(*node)});
  reserve(view, std::move(pending));
  for (scheduler::Node& node : view)
    node.allocatable_millicores =
        std::min(node.allocatable_millicores,
                 node.requested_by_others_millicores + node.allocatable_millicores * cpu_percent / 100);
  return view;
}

}  // namespace sluice::observe
