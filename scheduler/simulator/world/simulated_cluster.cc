#include "scheduler/simulator/world/simulated_cluster.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::simulator {
namespace {

// One job's part of a plan, while it is carried out.
struct Turn {
  JobState& job;
  const scheduler::JobPlan& plan;
  int live_workers = 0;   // that are not told to stop
  bool homeless = false;  // some have no node
};

Turn turn_of(JobState& job, const scheduler::JobPlan& plan) {
  Turn turn{job, plan};
  for (const WorkerState& worker : job.workers) {
    if (worker.gone_seconds < 0) ++turn.live_workers;
    if (worker.node < 0) turn.homeless = true;
  }
  return turn;
}

int number_of_nodes(const Cluster& cluster) {
  return std::accumulate(cluster.groups.begin(), cluster.groups.end(), 0,
                         [](int sum, const NodeGroup& group) { return sum + group.count; });
}

}  // namespace

SimulatedCluster::SimulatedCluster(const Cluster& cluster, std::vector<JobState>& jobs)
    : cluster_(cluster), jobs_(jobs), node_by_name_(number_of_nodes(cluster)) {
  nodes_.reserve(number_of_nodes(cluster));  // the index refers to their names
  for (const NodeGroup& group : cluster.groups) {
    for (int i = 0; i < group.count; ++i) {
      NodeState& node = nodes_.emplace_back();
      node.name = group.node_name(i);
      node.gpus = node.free_gpus = group.gpus;
      node.capacity_millicores = std::llround(group.cores * 1000);
      node.network_gbps = group.network_gbps;
      node.spot = group.spot;
      node_by_name_.add(node.name, static_cast<int>(nodes_.size()) - 1);
    }
  }
}

std::int64_t SimulatedCluster::share_millicores(int node, int gpus) const {
  return nodes_[node].capacity_millicores * gpus / nodes_[node].gpus;
}

std::vector<HostState> SimulatedCluster::find_hosts(int gpus) const {
  int best = -1;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const NodeState& node = nodes_[i];
    if (!node.up || node.cordoned || node.free_gpus < gpus) continue;
    if (best < 0 || node.free_gpus < nodes_[best].free_gpus) best = i;
  }
  if (best >= 0) return {HostState{best, gpus}};
  if (gpus <= cluster_.most_gpus_per_node()) return {};
  std::vector<HostState> hosts;
  for (int i = 0; i < static_cast<int>(nodes_.size()) && gpus > 0; ++i) {
    const NodeState& node = nodes_[i];
    if (!node.up || node.cordoned || node.gpus == 0 || node.free_gpus < node.gpus) continue;
    hosts.push_back(HostState{i, std::min(gpus, node.gpus)});
    gpus -= hosts.back().gpus;
  }
  if (gpus > 0) hosts.clear();
  return hosts;
}

// Frees CPU on a node for a trainer that starts: first the youngest workers go, then trainers give what they hold
// beyond their share.
void SimulatedCluster::make_room(int node, std::int64_t millicores) {
  while (nodes_[node].free_millicores() < millicores) {
    JobState* owner = nullptr;
    std::size_t youngest = 0;
    for (JobState& job : jobs_) {
      for (std::size_t i = 0; i < job.workers.size(); ++i) {
        if (job.workers[i].node != node) continue;
        if (owner != nullptr && job.workers[i].created_seconds <= owner->workers[youngest].created_seconds) continue;
        owner = &job;
        youngest = i;
      }
    }
    if (owner == nullptr) break;
    nodes_[node].worker_millicores -= owner->workers[youngest].millicores;
    touch(node);
    owner->workers.erase(owner->workers.begin() + static_cast<std::ptrdiff_t>(youngest));
    owner->dirty = owner->workers_changed = true;
    ++counts_.workers_preempted;
  }
  for (const int index : nodes_[node].trainers) {
    for (HostState& host : jobs_[index].hosts) {
      const std::int64_t missing = millicores - nodes_[node].free_millicores();
      const std::int64_t share = share_millicores(node, host.gpus);
      if (host.node != node || missing <= 0 || host.request_millicores <= share) continue;
      const std::int64_t request = std::max(share, host.request_millicores - missing);
      set_local(jobs_[index], host, request, std::max(request, host.limit_millicores));
    }
  }
}

void SimulatedCluster::start_trainer(JobState& job, std::vector<HostState> hosts, double now_seconds) {
  job.phase = Phase::kRunning;
  job.start_seconds = now_seconds;
  if (job.first_start_seconds < 0) job.first_start_seconds = now_seconds;
  job.hosts = std::move(hosts);
  job.hosts_changed = true;
  const auto fixed = std::llround(job.spec->local_cores * 1000);
  for (HostState& host : job.hosts) {
    const std::int64_t share = fixed > 0 ? fixed * host.gpus / job.spec->gpus : share_millicores(host.node, host.gpus);
    nodes_[host.node].free_gpus -= host.gpus;
    make_room(host.node, share);
    nodes_[host.node].trainers.push_back(job.index);
    const std::int64_t request = std::min(share, nodes_[host.node].free_millicores());
    set_local(job, host, request, request);
  }
}

void SimulatedCluster::remove_trainer(JobState& job, double now_seconds) {
  for (HostState& host : job.hosts) {
    NodeState& node = nodes_[host.node];
    node.free_gpus += host.gpus;
    node.local_millicores -= host.request_millicores;
    std::erase(node.trainers, job.index);
    for (const int other : node.trainers) jobs_[other].dirty = true;
  }
  job.hosts.clear();
  for (WorkerState& worker : job.workers)
    if (worker.gone_seconds < 0) stop(job, worker, now_seconds);
  settle_workers(job, now_seconds);
  job.allocated_workers = 0;
}

void SimulatedCluster::touch(int node) {
  for (const int index : nodes_[node].trainers)
    for (const HostState& host : jobs_[index].hosts)
      if (host.node == node && (host.limit_millicores > host.request_millicores || cluster_.physics.interference > 0))
        jobs_[index].dirty = true;
}

void SimulatedCluster::set_local(JobState& job, HostState& host, std::int64_t request, std::int64_t limit) {
  NodeState& node = nodes_[host.node];
  node.local_millicores += request - host.request_millicores;
  host.request_millicores = request;
  host.limit_millicores = std::max(request, std::min(limit, node.capacity_millicores));
  job.dirty = true;
  // Its neighbours' part of the idle CPU changes, too.
  for (const int other : node.trainers) jobs_[other].dirty = true;
}

bool SimulatedCluster::shrink_local(JobState& job, const scheduler::JobPlan& plan) {
  if (plan.local.size() != job.hosts.size() || job.spec->local_cores > 0) return false;
  bool changed = false;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    HostState& host = job.hosts[i];
    const std::int64_t request = std::max<std::int64_t>(0, plan.local[i].request_millicores);
    if (request >= host.request_millicores) continue;
    set_local(job, host, request, plan.local[i].limit_millicores);
    changed = true;
  }
  return changed;
}

bool SimulatedCluster::grow_local(JobState& job, const scheduler::JobPlan& plan) {
  if (plan.local.size() != job.hosts.size() || job.spec->local_cores > 0) return false;
  bool changed = false;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) {
    HostState& host = job.hosts[i];
    const std::int64_t room = host.request_millicores + nodes_[host.node].free_millicores();
    const std::int64_t asked = std::max<std::int64_t>(0, plan.local[i].request_millicores);
    const std::int64_t request = std::min(asked, room);
    const std::int64_t limit =
        std::max(request, std::min(plan.local[i].limit_millicores, nodes_[host.node].capacity_millicores));
    if (request < asked) ++counts_.requests_cut;
    if (request == host.request_millicores && limit == host.limit_millicores) continue;
    set_local(job, host, request, limit);
    changed = true;
  }
  return changed;
}

void SimulatedCluster::stop(JobState& job, WorkerState& worker, double now_seconds) {
  worker.gone_seconds = now_seconds + (worker.node < 0 ? 0 : cluster_.physics.worker_drain_seconds);
  job.dirty = job.workers_changed = true;
  ++counts_.workers_stopped;
}

bool SimulatedCluster::stop_surplus(JobState& job, const scheduler::JobPlan& plan, int surplus, double now_seconds) {
  if (surplus <= 0) return false;
  scheduler::NameIndex by_name(job.workers.size());
  for (int i = 0; i < std::ssize(job.workers); ++i) by_name.add(job.workers[i].name, i);
  for (const std::string& victim : plan.victims) {
    if (surplus == 0) break;
    const int at = by_name.position_of(victim);
    if (at == scheduler::kNowhere || job.workers[at].gone_seconds >= 0) continue;
    stop(job, job.workers[at], now_seconds);
    --surplus;
  }
  // A plan that names too few lets the cluster choose: the youngest, those without a node first.
  for (const bool bound : {false, true})
    for (auto worker = job.workers.rbegin(); worker != job.workers.rend() && surplus > 0; ++worker) {
      if (worker->gone_seconds >= 0 || (worker->node >= 0) != bound) continue;
      stop(job, *worker, now_seconds);
      --surplus;
    }
  settle_workers(job, now_seconds);
  return true;
}

bool SimulatedCluster::bind(JobState& job, WorkerState& worker, int node, double now_seconds) {
  NodeState& state = nodes_[node];
  if (!state.up || state.cordoned || state.free_millicores() < worker.millicores) return false;
  const Physics& physics = cluster_.physics;
  state.worker_millicores += worker.millicores;
  touch(node);
  worker.node = node;
  worker.ready_seconds = now_seconds + physics.worker_startup_seconds;
  worker.warm_seconds = worker.ready_seconds + physics.worker_warmup_seconds;
  job.dirty = job.workers_changed = true;
  ++job.workers_started;
  ++counts_.workers_started;
  return true;
}

// Nodes without GPUs first, then those with most free CPU, as the cluster's own scheduler does with a preference.
int SimulatedCluster::node_with_room(std::int64_t millicores) const {
  int best = -1;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const NodeState& node = nodes_[i];
    if (!node.up || node.cordoned || node.free_millicores() < millicores) continue;
    if (best >= 0) {
      const NodeState& other = nodes_[best];
      if ((node.gpus > 0) != (other.gpus > 0) ? node.gpus > 0 : node.free_millicores() <= other.free_millicores())
        continue;
    }
    best = i;
  }
  return best;
}

bool SimulatedCluster::start_missing(JobState& job, const scheduler::JobPlan& plan, int missing, double now_seconds) {
  for (int i = 0; i < missing; ++i) {
    WorkerState worker;
    worker.name = "w" + std::to_string(job.index) + "-" + std::to_string(job.next_worker++);
    worker.millicores = cluster_.physics.worker_millicores;
    worker.created_seconds = now_seconds;
    const int hint =
        i < static_cast<int>(plan.new_worker_nodes.size()) ? node_by_name_.position_of(plan.new_worker_nodes[i]) : -1;
    if (hint < 0 || !bind(job, worker, hint, now_seconds)) {
      const int node = node_with_room(worker.millicores);
      if (node >= 0) bind(job, worker, node, now_seconds);
    }
    job.workers.push_back(std::move(worker));
    job.workers_changed = true;
  }
  return missing > 0;
}

void SimulatedCluster::settle_workers(JobState& job, double now_seconds) {
  for (std::size_t i = 0; i < job.workers.size();) {
    WorkerState& worker = job.workers[i];
    if (worker.gone_seconds >= 0 && worker.gone_seconds <= now_seconds) {
      if (worker.node >= 0) {
        nodes_[worker.node].worker_millicores -= worker.millicores;
        touch(worker.node);
      }
      job.workers.erase(job.workers.begin() + static_cast<std::ptrdiff_t>(i));
      job.dirty = job.workers_changed = true;
      continue;
    }
    if (worker.node < 0) {
      const int node = node_with_room(worker.millicores);
      if (node >= 0) bind(job, worker, node, now_seconds);
    }
    ++i;
  }
}

void SimulatedCluster::lose_workers(int node) {
  for (JobState& job : jobs_) {
    const std::size_t lost = std::erase_if(job.workers, [&](const WorkerState& worker) { return worker.node == node; });
    if (lost > 0) job.dirty = job.workers_changed = true;
  }
  nodes_[node].worker_millicores = 0;
  touch(node);
}

bool SimulatedCluster::apply(const scheduler::Plan& plan, const std::vector<int>& active, double now_seconds) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < std::min(plan.jobs.size(), active.size()); ++i) {
    JobState& job = jobs_[active[i]];
    job.memory = plan.jobs[i].estimate.memory;
    if (job.phase == Phase::kRunning) turns.push_back(turn_of(job, plan.jobs[i]));
  }
  bool changed = false;
  for (Turn& turn : turns) changed |= shrink_local(turn.job, turn.plan);
  for (Turn& turn : turns) {
    const int wanted = std::max(0, turn.plan.workers);
    changed |= stop_surplus(turn.job, turn.plan, turn.live_workers - wanted, now_seconds);
    turn.live_workers = std::min(turn.live_workers, wanted);
  }
  for (Turn& turn : turns) changed |= grow_local(turn.job, turn.plan);
  // Workers that wait for room, for the end of a drain or for a node come before workers that are asked for only now.
  for (Turn& turn : turns)
    if (turn.homeless) settle_workers(turn.job, now_seconds);
  for (Turn& turn : turns) {
    const int wanted = std::min(turn.plan.workers, cluster_.physics.max_workers_per_job);
    changed |= start_missing(turn.job, turn.plan, wanted - turn.live_workers, now_seconds);
    if (turn.job.allocated_workers != turn.plan.workers) ++turn.job.allocation_changes;
    turn.job.allocated_workers = turn.plan.workers;
  }
  return changed;
}

}  // namespace sluice::simulator
