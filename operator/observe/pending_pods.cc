#include "operator/observe/pending_pods.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::observe {
namespace {

std::int64_t room(const NodeWithoutWorkers& node) {
  return node.seen->schedulable ? node.seen->allocatable_millicores - node.seen->requested_by_others_millicores : 0;
}

NodeWithoutWorkers* widest_for_trainer(const PendingPod& trainer, std::vector<NodeWithoutWorkers>& nodes) {
  NodeWithoutWorkers* widest = nullptr;
  for (NodeWithoutWorkers& node : nodes)
    if ((widest == nullptr || room(node) > room(*widest)) && trainer.rules->admit(node.object)) widest = &node;
  return widest != nullptr && room(*widest) >= trainer.request_millicores ? widest : nullptr;
}

bool fits(const PendingPod& pod, const NodeWithoutWorkers& node) {
  const std::int64_t memory = node.seen->free_memory_bytes.value_or(std::numeric_limits<std::int64_t>::max());
  if (!node.seen->schedulable || room(node) < pod.request_millicores || memory < pod.request_memory_bytes) return false;
  return std::all_of(pod.devices.begin(), pod.devices.end(), [&](const auto& device) {
    const auto free = node.free_devices.find(device.first);
    return free != node.free_devices.end() && free->second >= device.second;
  });
}

void take(const PendingPod& pod, NodeWithoutWorkers& node) {
  node.seen->requested_by_others_millicores += pod.request_millicores;
  if (pod.is_trainer) return;  // its memory is its own: only its CPU has been asked for
  for (const auto& [resource, count] : pod.devices) node.free_devices[resource] -= count;
  if (!node.seen->free_memory_bytes) return;
  const std::int64_t left_bytes = *node.seen->free_memory_bytes -= pod.request_memory_bytes;
  if (node.worker_memory_bytes <= left_bytes) return;
  // Workers leave a node for lack of CPU only: they keep as much CPU as belongs to the memory that is left.
  const double kept = static_cast<double>(left_bytes) / static_cast<double>(node.worker_memory_bytes);
  const auto kept_millicores = static_cast<std::int64_t>(kept * static_cast<double>(node.worker_millicores));
  node.seen->requested_by_others_millicores =
      std::max(node.seen->requested_by_others_millicores, node.seen->allocatable_millicores - kept_millicores);
}

}  // namespace

NodeWithoutWorkers* PendingPods::place(const PendingPod& pod, std::vector<NodeWithoutWorkers>& nodes) const {
  const auto turn = turns_.find(pod.uid);
  // The node that kube-scheduler names, then the one that workers have begun to leave, then the one with the most room.
  const auto rank = [&](const NodeWithoutWorkers& node) {
    const bool begun = turn != turns_.end() && turn->second.node == node.seen->name;
    return node.seen->name == pod.nominated_node ? 3 : begun ? 2 : node.worker_millicores > 0 ? 1 : 0;
  };
  NodeWithoutWorkers* best = nullptr;
  for (NodeWithoutWorkers& node : nodes) {
    if (rank(node) == 0 || !fits(pod, node) || !pod.rules->admit(node.object)) continue;
    if (best == nullptr || std::pair(rank(node), room(node)) > std::pair(rank(*best), room(*best))) best = &node;
  }
  return best;
}

void PendingPods::reserve(std::vector<PendingPod> pending, std::vector<NodeWithoutWorkers>& nodes, double now_seconds) {
  const auto has_turn = [&](const PendingPod& pod) { return turns_.contains(pod.uid); };
  // Trainers first, then pods whose room is being made, so that a newcomer does not move it to another node.
  std::sort(pending.begin(), pending.end(), [&](const PendingPod& a, const PendingPod& b) {
    if (a.is_trainer != b.is_trainer) return a.is_trainer;
    if (has_turn(a) != has_turn(b)) return has_turn(a);
    return a.request_millicores != b.request_millicores ? a.request_millicores > b.request_millicores : a.key < b.key;
  });
  std::map<std::string, Turn> turns;
  int neighbours = 0;
  for (const PendingPod& pod : pending) {
    if (pod.is_trainer) {
      if (NodeWithoutWorkers* node = widest_for_trainer(pod, nodes)) take(pod, *node);
      continue;
    }
    const auto before = turns_.find(pod.uid);
    double since = before == turns_.end() ? now_seconds : before->second.since_seconds;
    if (now_seconds - since >= kPatienceSeconds + kRetrySeconds) since = now_seconds;
    if (now_seconds - since >= kPatienceSeconds) {
      turns[pod.uid] = {"", since};
      continue;
    }
    if (neighbours == kMostNeighbours) continue;
    if (NodeWithoutWorkers* node = place(pod, nodes)) {
      ++neighbours;
      take(pod, *node);
      turns[pod.uid] = {node->seen->name, since};
    } else if (before != turns_.end()) {
      turns[pod.uid] = {"", since};  // a node that comes and goes gives no second turn
    }
  }
  turns_ = std::move(turns);
}

}  // namespace sluice::observe
