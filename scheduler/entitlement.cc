#include "scheduler/entitlement.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {
namespace {

// Nodes without GPUs are shared by ranks.
double claim_on(const TrainerHost& host, const NodeState& state) {
  return state.node->gpus > 0 ? host.gpus : host.ranks;
}

std::vector<double> claims_per_node(const std::vector<Contender>& contenders, const NodeTable& nodes) {
  std::vector<double> claims(nodes.size());
  for (const Contender& c : contenders) {
    if (!c.adjustable) continue;
    for (std::size_t i = 0; i < c.hosts.size(); ++i) {
      const int node = c.hosts[i].node;
      if (node != kNowhere) claims[node] += claim_on(c.job->hosts[i], nodes[node]);
    }
  }
  return claims;
}

bool frozen(const Contender& c) { return !c.belief.metrics_problem.empty() && c.belief.known; }

void give(Contender& c, HostShare& host, std::int64_t millicores, NodeTable& nodes) {
  host.granted += millicores;
  c.local_millicores += millicores;
  if (host.node != kNowhere) nodes.give_local(host.node, millicores);
}

// Feeders get up to so much, as far as there is room.
void raise(Contender& c, std::int64_t HostShare::*to, NodeTable& nodes) {
  for (HostShare& host : c.hosts) {
    if (host.node == kNowhere) continue;
    const std::int64_t room = std::max<std::int64_t>(nodes[host.node].free_for_local(), 0);
    give(c, host, std::min(host.*to - host.granted, room), nodes);
  }
}

void hold_as_it_is(Contender& c, NodeTable& nodes) {
  for (std::size_t i = 0; i < c.hosts.size(); ++i) {
    HostShare& host = c.hosts[i];
    host.floor = host.most = c.job->hosts[i].request_millicores;
    give(c, host, host.floor, nodes);
  }
}

void set_floor(const Contender& c, const TrainerHost& at, HostShare& host, const Config& config) {
  const std::int64_t least = 1000 * std::max(at.gpus, at.gpus > 0 ? 1 : at.ranks);
  if (!c.belief.known || c.job->placement == Placement::kRemote) {
    host.floor = c.job->placement == Placement::kRemote ? std::min(host.share, least) : host.share;
    host.most = host.floor;
    return;
  }
  if (frozen(c)) {
    host.floor = std::min(host.share, std::max(least, at.request_millicores));
    host.most = std::max(host.floor, at.request_millicores);
    return;
  }
  const double knee = 1000 * c.belief.knee_cores * host.part;
  const auto need = static_cast<std::int64_t>(std::min(std::ceil(config.floor_of_need * knee), 1e12));
  host.floor = std::min(host.share, std::max(least, need));
  // A feeder serves its own host's ranks, and one that was seen to use little may not be able to use much.
  const double usable =
      std::min(c.want.supply_ratio * knee, 1000 * config.local_extrapolation * c.belief.busy_local_cores * host.part);
  host.most = std::max(host.floor, static_cast<std::int64_t>(std::min(usable, 1e12)));
}

}  // namespace

void hold_workers(const std::vector<Contender>& contenders, NodeTable& nodes) {
  for (const Contender& c : contenders) {
    if (!c.want.unconditional) continue;
    for (std::size_t i = 0; i < c.worker_nodes.size(); ++i)
      if (c.worker_nodes[i] != kNowhere && !c.job->workers[i].draining)
        nodes[c.worker_nodes[i]].staying_millicores += c.worker_millicores;
  }
}

void grant_floors(std::vector<Contender>& contenders, NodeTable& nodes, const Config& config) {
  const std::vector<double> claims = claims_per_node(contenders, nodes);
  for (Contender& c : contenders) {
    if (!c.job->local_adjustable) continue;
    if (!c.adjustable) hold_as_it_is(c, nodes);
  }
  // Feeders that stay as they are leave less to share.
  std::vector<std::int64_t> room(nodes.size());
  for (int node = 0; node < nodes.size(); ++node)
    room[node] = std::max<std::int64_t>(0, nodes[node].room_millicores - nodes[node].local_millicores);
  for (Contender& c : contenders) {
    if (!c.adjustable) continue;
    for (std::size_t i = 0; i < c.hosts.size(); ++i) {
      HostShare& host = c.hosts[i];
      if (host.node == kNowhere) {  // nothing is known that could be shared
        host.share = host.floor = host.most = c.job->hosts[i].request_millicores;
        give(c, host, host.floor, nodes);
        continue;
      }
      const NodeState& state = nodes[host.node];
      const double all = std::max<double>(state.node->gpus, claims[host.node]);
      const double part = all > 0 ? claim_on(c.job->hosts[i], state) / all : 0;
      host.share = static_cast<std::int64_t>(part * static_cast<double>(room[host.node]));
      set_floor(c, c.job->hosts[i], host, config);
      give(c, host, std::min(host.floor, host.held), nodes);
    }
  }
  for (Contender& c : contenders)
    if (c.adjustable) raise(c, &HostShare::floor, nodes);
}

void hold_frozen(std::vector<Contender>& contenders, NodeTable& nodes) {
  for (Contender& c : contenders)
    if (c.adjustable && frozen(c)) raise(c, &HostShare::most, nodes);
}

std::int64_t limit_millicores(const Contender& contender, const HostShare& host, const NodeTable& nodes) {
  if (host.node == kNowhere || contender.job->placement == Placement::kRemote) return host.granted;
  return std::max(host.granted, nodes[host.node].room_millicores);
}

}  // namespace sluice::scheduler
