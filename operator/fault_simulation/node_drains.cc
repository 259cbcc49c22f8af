// The part of ClusterRun in which nodes are drained: by the adversary, who gives them back, and by people.
#include <nlohmann/json.hpp>

#include "operator/api/node.h"
#include "operator/fault_simulation/cluster_run.h"

namespace sluice::simulation {

using kube::Json;
using kube::fake::Reply;
using std::chrono::seconds;

namespace {

constexpr double kReclaimed = 0.4;  // share of drains that are the notice of a machine that is taken back
constexpr int kLeastSeconds = 15;   // of a drain, and of the time without the machine
constexpr int kMostSeconds = 60;

}  // namespace

Clock::TimePoint ClusterRun::next_step_of_drain() {
  return clock_.now() + seconds(kLeastSeconds + static_cast<int>(random_.below(kMostSeconds - kLeastSeconds)));
}

void ClusterRun::drain_node() {
  const Json& nodes = workload_.nodes;
  const std::string name = nodes[random_.below(nodes.size())].at("name");
  const auto node = server_.get(kube::kNodes, {"", name});
  if (!node || !api::Node(*node).schedulable()) return;
  say("node " + name + " is drained");
  cluster_.drain(name);
  drains_[name] = {next_step_of_drain(), random_.chance(kReclaimed)};
}

// Once a second.
void ClusterRun::continue_drains() {
  for (auto& [name, drain] : std::map(drains_)) {
    if (clock_.now() < drain.next_step_at) continue;
    if (!drain.is_reclaimed || !server_.get(kube::kNodes, {"", name})) {
      end_drain(name);
    } else {
      say("node " + name + " is taken back");
      cluster_.remove_node(name);
      drains_[name].next_step_at = next_step_of_drain();
    }
  }
}

void ClusterRun::end_drain(const std::string& name) {
  if (drains_.erase(name) == 0) return;
  say("node " + name + " is there again");
  if (server_.get(kube::kNodes, {"", name}))
    cluster_.uncordon(name);
  else
    cluster_.add_node(name);
}

// People's word holds, whatever the adversary has done to the node.
Reply ClusterRun::change_node(const Json& action) {
  const auto named = [&](const char* verb) -> std::string {
    const std::string name = action.value(verb, "");
    end_drain(name);
    return name;
  };
  if (action.contains("drain")) return cluster_.drain(named("drain"));
  if (action.contains("removeNode")) return cluster_.remove_node(named("removeNode"));
  return cluster_.add_node(named("addNode"));
}

}  // namespace sluice::simulation
