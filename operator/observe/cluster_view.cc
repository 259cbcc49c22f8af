#include "operator/observe/cluster_view.h"

#include <algorithm>
#include <map>
#include <string>

#include "operator/api/node.h"
#include "operator/observe/node_facts.h"

namespace sluice::observe {

namespace {

constexpr std::int64_t kLeastMillicoresOfSharedNode = 4000;

struct WorkersOfNode {
  std::int64_t millicores = 0;
  std::int64_t memory_bytes = 0;
};

// The nodes as far as pods that wait need to know. `objects`: in the order of `nodes`.
std::vector<NodeWithoutWorkers> without_workers(std::vector<scheduler::Node>& nodes,
                                                const kube::Store::Objects& objects,
                                                const std::map<std::string, WorkersOfNode>& workers,
                                                const std::map<std::string, Devices>& used_devices) {
  std::vector<NodeWithoutWorkers> view;
  auto seen = nodes.begin();
  for (const auto& [key, object] : objects) {
    view.push_back({api::Node(*object), &*seen++, 0, 0, {}});
    if (const auto found = workers.find(key.name); found != workers.end()) {
      view.back().worker_millicores = found->second.millicores;
      view.back().worker_memory_bytes = found->second.memory_bytes;
    }
    Devices& free = view.back().free_devices;
    free = view.back().object.devices();
    if (const auto used = used_devices.find(key.name); used != used_devices.end())
      for (const auto& [resource, count] : used->second) free[resource] -= count;
  }
  return view;
}

PendingPod pending_pod(const kube::ObjectKey& key, const PodView& pod) {
  return {key.to_string(),          pod.uid,     pod.is_trainer, pod.nominated_node, pod.request_millicores,
          pod.request_memory_bytes, pod.devices, &*pod.rules};
}

}  // namespace

std::int64_t kept_free_millicores(std::int64_t allocatable_millicores, int free_percent) {
  return allocatable_millicores < kLeastMillicoresOfSharedNode ? 0 : allocatable_millicores * free_percent / 100;
}

std::vector<scheduler::Node> view_nodes(const kube::Store::Objects& nodes, const PodViews::Entries& pods,
                                        const std::set<std::string>& known_pools,
                                        const std::set<std::string>& planned_feeders, CpuShares shares,
                                        const control::NodeFacts& facts, PendingPods& pending_pods,
                                        double now_seconds) {
  std::map<std::string, std::int64_t> reserved;
  std::map<std::string, std::int64_t> reserved_bytes;
  std::map<std::string, Devices> used_devices;
  std::map<std::string, WorkersOfNode> workers;
  std::map<std::string, WorkersOfNode> beside_workers;
  std::vector<PendingPod> pending;
  for (const auto& [key, entry] : pods) {
    const PodView& pod = entry.view;
    if (pod.finished) continue;
    if (known_pools.contains(pod.controller_uid)) {
      WorkersOfNode& of_node = workers[pod.node];
      of_node.millicores += pod.request_millicores;
      of_node.memory_bytes += pod.request_memory_bytes;
      WorkersOfNode& beside = beside_workers[pod.node];
      beside.millicores += pod.beside_worker_millicores;
      beside.memory_bytes += pod.beside_worker_memory_bytes;
      continue;
    }
    if (!pod.node.empty())
      for (const auto& [resource, count] : pod.devices) used_devices[pod.node][resource] += count;
    if (!pod.node.empty()) reserved_bytes[pod.node] += pod.request_memory_bytes;
    if (!pod.node.empty())
      reserved[pod.node] += pod.feeder && planned_feeders.contains(pod.uid) ? pod.request_without_feeder_millicores
                                                                            : pod.request_millicores;
    else if (pod.rules && !pod.leaving)
      pending.push_back(pending_pod(key, pod));
  }
  std::vector<scheduler::Node> view;
  for (const auto& [key, object] : nodes) {
    const api::Node node(*object);
    view.push_back({key.name, node.allocatable_millicores(), reserved[key.name], node.schedulable()});
    scheduler::Node& seen = view.back();
    seen.gpus = node.gpus();
    if (const auto memory = node.allocatable_memory_bytes())
      seen.free_memory_bytes = std::max<std::int64_t>(0, *memory - reserved_bytes[key.name]);
    seen.network_bytes_per_second = network_bytes_per_second(node, facts);
    seen.price_per_hour = price_per_hour(node, facts);
    seen.spot = node.spot();
  }
  auto nodes_to_leave =
      pending.empty() ? std::vector<NodeWithoutWorkers>() : without_workers(view, nodes, workers, used_devices);
  pending_pods.reserve(std::move(pending), nodes_to_leave, now_seconds);
  for (scheduler::Node& node : view) {
    // It goes with the workers, so pods that wait may count on it. No further worker may.
    const WorkersOfNode& beside = beside_workers[node.name];
    node.requested_by_others_millicores += beside.millicores;
    if (node.free_memory_bytes)
      node.free_memory_bytes = std::max<std::int64_t>(0, *node.free_memory_bytes - beside.memory_bytes);
    const std::int64_t others = node.requested_by_others_millicores, all = node.allocatable_millicores;
    node.allocatable_millicores = std::min({all, others + all * shares.cluster_percent / 100,
                                            std::max(others, all - kept_free_millicores(all, shares.free_percent))});
  }
  return view;
}

}  // namespace sluice::observe
