#include "operator/observe/trainer_hosts.h"

#include <algorithm>

namespace sluice::observe {

std::vector<FeederPod> feeders_of(const TrainerPods& pods, const std::string& job_uid) {
  std::vector<FeederPod> feeders;
  for (const auto* pod : pods) {
    const PodView& view = pod->second.view;
    if (view.feeder && !view.node.empty()) feeders.push_back({pod->first, view.uid, job_uid, view.node, *view.feeder});
  }
  return feeders;
}

std::vector<scheduler::TrainerHost> hosts_of(const TrainerPods& pods, int ranks, int gpus) {
  std::map<std::string, scheduler::TrainerHost> hosts;
  for (const auto* pod : pods) {
    const PodView& view = pod->second.view;
    if (view.node.empty()) continue;
    const auto [entry, is_new] = hosts.try_emplace(view.node);
    scheduler::TrainerHost& host = entry->second;
    if (is_new) host.ranks = 0;
    host.node = view.node;
    host.ranks += ranks;
    host.gpus += gpus;
    if (!view.feeder) continue;
    const api::FeederCpu& cpu = view.feeder->in_force;
    host.request_millicores += cpu.request_millicores;
    // Without a limit the feeder may use more, while its node is idle; only the request is its own.
    host.limit_millicores += cpu.limit_millicores > 0 ? cpu.limit_millicores : cpu.request_millicores;
  }
  std::vector<scheduler::TrainerHost> list;
  list.reserve(hosts.size());
  for (auto& [node, host] : hosts) list.push_back(std::move(host));
  return list;
}

bool can_resize(const std::vector<FeederPod>& feeders, const std::set<std::string>& fixed) {
  return !feeders.empty() && std::all_of(feeders.begin(), feeders.end(), [&](const FeederPod& pod) {
    return pod.feeder.can_be_resized() && !fixed.contains(pod.uid);
  });
}

}  // namespace sluice::observe
