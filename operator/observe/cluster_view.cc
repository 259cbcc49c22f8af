#include "operator/observe/cluster_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/names.h"
#include "operator/observe/fields.h"
#include "src/kube/quantity.h"

namespace sluice::observe {

using nlohmann::json;

namespace {

// Unparseable quantities cannot come from the API server; they count as nothing.
std::int64_t millicores(const json& quantity) {
  if (quantity.is_null()) return 0;
  return kube::parse_millicores(quantity.is_string() ? quantity.get<std::string>() : quantity.dump()).value_or(0);
}

std::int64_t container_request(const json& container) {
  return millicores(field(container, "/resources/requests/cpu"));
}

bool finished(const json& pod) {
  const std::string phase = text_field(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

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

std::int64_t pod_request_millicores(const json& pod) {
  const std::int64_t overhead = millicores(field(pod, "/spec/overhead/cpu"));
  if (const json& whole = field(pod, "/spec/resources/requests/cpu"); !whole.is_null())
    return millicores(whole) + overhead;
  std::int64_t sidecars = 0;
  std::int64_t initialisation = 0;
  if (const json& containers = field(pod, "/spec/initContainers"); containers.is_array()) {
    for (const json& container : containers) {
      const std::int64_t request = container_request(container);
      if (text_field(container, "/restartPolicy") == "Always") sidecars += request;
      const bool passing = text_field(container, "/restartPolicy") != "Always";
      initialisation = std::max(initialisation, sidecars + (passing ? request : 0));
    }
  }
  std::int64_t running = sidecars;
  if (const json& containers = field(pod, "/spec/containers"); containers.is_array())
    for (const json& container : containers) running += container_request(container);
  return std::max(running, initialisation) + overhead;
}

std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const kube::Store::Objects& pods,
                                        const std::function<bool(const json& pod)>& is_worker, int cpu_percent) {
  std::map<std::string, std::int64_t> reserved;
  std::vector<PendingTrainer> pending;
  for (const auto& [key, pod] : pods) {
    if (finished(*pod) || is_worker(*pod)) continue;
    const std::string node = text_field(*pod, "/spec/nodeName");
    const bool trainer = text_field(*pod, "/metadata/labels/sluice.dev~1component") == control::kTrainerComponent;
    const bool leaving = !field(*pod, "/metadata/deletionTimestamp").is_null();
    if (!node.empty())
      reserved[node] += pod_request_millicores(*pod);
    else if (trainer && !leaving)
      pending.push_back({key.to_string(), pod_request_millicores(*pod)});
  }
  std::vector<scheduler::Node> view;
  for (const auto& [key, node] : nodes)
    view.push_back(
        {key.name, millicores(field(*node, "/status/allocatable/cpu")), reserved[key.name], schedulable(*node)});
  reserve(view, std::move(pending));
  for (scheduler::Node& node : view)
    node.allocatable_millicores =
        std::min(node.allocatable_millicores,
                 node.requested_by_others_millicores + node.allocatable_millicores * cpu_percent / 100);
  return view;
}

}  // namespace sluice::observe
