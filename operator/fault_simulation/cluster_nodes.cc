// The part of ClusterModel about nodes: they come, are drained, and go.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/node_taints.h"
#include "operator/api/pod.h"
#include "operator/fault_simulation/cluster_model.h"

namespace sluice::simulation {

using api::Pod;
using kube::Json;
using kube::fake::Reply;

namespace {

constexpr double kLongestEvictionSeconds = 10;  // a drain goes from pod to pod
constexpr double kLongestLossSeconds = 5;       // until the pods of a node that is gone are removed

// REQUIRES: the workload has one.
const Json& node_named(const Workload& workload, const std::string& name) {
  return *std::find_if(workload.nodes.begin(), workload.nodes.end(),
                       [&](const Json& node) { return node.at("name") == name; });
}

}  // namespace

Reply ClusterModel::add_node(const std::string& name) {
  const Json& node = node_named(workload_, name);
  Json metadata = {{"name", name}};
  metadata["labels"] = {{api::kArchitectureLabel, "amd64"}, {api::kLinux.name, api::kLinux.value}};
  if (node.contains("labels")) metadata["labels"].update(node.at("labels"));
  Json created = {{"metadata", std::move(metadata)}};
  if (node.contains("taints")) created["spec"]["taints"] = node.at("taints");
  Reply reply = server_.create(kube::kNodes, std::move(created));
  if (!reply.ok()) return reply;
  return server_.modify(
      kube::kNodes, {"", name},
      [&](Json& object) {
        object["status"] = {{"allocatable", {{"cpu", node.at("cpu")}}},
                            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
      },
      "status");
}

// As kubectl drain: the node is cordoned, then its pods are evicted. No disruption budget covers them. Pods that have
// ended stay: a Job counts them.
Reply ClusterModel::drain(const std::string& name) {
  Reply cordoned = server_.modify(kube::kNodes, {"", name}, [](Json& node) {
    Json& spec = node["spec"];
    spec["unschedulable"] = true;
    if (!spec.contains("taints")) spec["taints"] = Json::array();
    spec["taints"].push_back({{"key", api::kCordonTaint}, {"effect", "NoSchedule"}});
  });
  for_pods_on(name, [&](const kube::ObjectKey& key, const Pod& pod) {
    if (pod.serves()) schedule(Task::kEvict, key, pod.uid(), 0.1, kLongestEvictionSeconds);
  });
  return cordoned;
}

Reply ClusterModel::uncordon(const std::string& name) {
  const Json& node = node_named(workload_, name);
  return server_.modify(kube::kNodes, {"", name}, [&](Json& object) {
    object["spec"] = {{"taints", node.value("taints", Json::array())}};
  });
}

// As when a cloud takes a machine back: what still runs there is gone at once, and soon no pod says otherwise.
Reply ClusterModel::remove_node(const std::string& name) {
  for_pods_on(name, [&](const kube::ObjectKey& key, const Pod& pod) {
    if (!pod.ended()) schedule(Task::kRemove, key, pod.uid(), 0.1, kLongestLossSeconds);
  });
  return server_.remove(kube::kNodes, {"", name});
}

void ClusterModel::for_pods_on(const std::string& node,
                               const std::function<void(const kube::ObjectKey&, const Pod&)>& act) const {
  for (const auto& [key, object] : server_.all(kube::kPods))
    if (const Pod pod(*object); pod.node() == node) act(key, pod);
}

}  // namespace sluice::simulation
