#include "scheduler/contender.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace sluice::scheduler {
namespace {

// What a bid is multiplied with. Jobs about to end do not outbid everybody: their remaining time counts as a minute.
double worth_of(const Job& job, const Config& config) {
  const double gang = std::max({job.gpus, job.ranks, 1});
  const double hours =
      job.remaining_seconds ? std::max(*job.remaining_seconds, config.shortest_remaining_seconds) / 3600 : 1;
  switch (config.objective) {
    case Objective::kBalanced:
    case Objective::kCost: return job.weight * std::sqrt(gang) / std::sqrt(hours);
    case Objective::kThroughput: return job.weight * gang;
    case Objective::kCompletionTime: return job.weight / hours;
    case Objective::kFair: return job.weight;
  }
  return job.weight;
}

void set_supply(const Config& config, Contender& c) {
  const Belief& belief = c.belief;
  if (c.adjustable && belief.known) {
    const double knee = std::max(belief.knee_cores, 1e-9);
    c.supply_per_local_core = c.job->placement == Placement::kRemote ? 0 : 1 / knee;
    c.supply_per_remote_core = belief.efficiency() / knee;
    return;
  }
  c.supply_base = belief.supply_ratio(0, *c.job, config);
  c.supply_per_remote_core = belief.supply_ratio(1, *c.job, config) - c.supply_base;
}

void find_workers(NodeTable& nodes, Contender& c) {
  c.worker_nodes.reserve(c.job->workers.size());
  for (const Worker& worker : c.job->workers) {
    const int node = nodes.index_of(worker.node);
    c.worker_nodes.push_back(node);
    if (worker.draining) continue;
    ++c.live;
    if (node == kNowhere) continue;
    ++c.bound;
    nodes[node].standing_millicores += c.job->worker_millicores;
    if (!nodes[node].node->schedulable) ++c.outside;
  }
}

void find_hosts(const NodeTable& nodes, Contender& c) {
  c.hosts.reserve(c.job->hosts.size());
  for (const TrainerHost& host : c.job->hosts) {
    HostShare share;
    share.node = nodes.index_of(host.node);
    share.held = host.request_millicores;
    share.part = static_cast<double>(host.ranks) / std::max(c.job->ranks, 1);
    c.hosts.push_back(share);
  }
}

}  // namespace

void occupy(NodeState& state, const Contender& c, int workers) {
  state.worker_millicores += workers * c.worker_millicores;
  state.memory_bytes -= workers * c.job->worker_memory_bytes;
  state.network_bytes_per_second -= workers * c.worker_traffic;
}

std::vector<Contender> make_contenders(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config) {
  std::vector<const Job*> jobs;
  jobs.reserve(snapshot.jobs.size());
  for (const Job& job : snapshot.jobs) jobs.push_back(&job);
  const auto before = [](const Job* a, const Job* b) { return a->id < b->id; };
  if (!std::is_sorted(jobs.begin(), jobs.end(), before)) std::sort(jobs.begin(), jobs.end(), before);

  std::unordered_map<std::string_view, int> quotas;
  for (int i = 0; i < std::ssize(snapshot.quotas); ++i) quotas.emplace(snapshot.quotas[i].name, i);

  std::vector<Contender> contenders(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Contender& c = contenders[i];
    c.job = jobs[i];
    c.belief = estimate(*c.job, snapshot.taken_at_seconds, config);
    c.adjustable = c.job->local_adjustable && c.job->running && c.job->mode == Mode::kAuto;
    c.want = want_of(*c.job, c.belief, config);
    c.worker_millicores = c.job->worker_millicores;
    c.held_workers = c.job->allocated_workers;
    c.least_workers = c.job->min_workers;
    c.priority = c.job->priority;
    if (c.job->bytes_per_sample && c.belief.known)
      c.worker_traffic = c.belief.remote_rate_per_core * c.worker_cores() * *c.job->bytes_per_sample;
    c.worth = worth_of(*c.job, config);
    set_supply(config, c);
    find_workers(nodes, c);
    find_hosts(nodes, c);
    if (const auto quota = quotas.find(c.job->quota); !c.job->quota.empty() && quota != quotas.end())
      c.quota = quota->second;
    if (c.job->mode == Mode::kRecommend) {
      c.advised = c.want;
      c.want = {c.job->allocated_workers, c.want.reason, true};
    }
    c.limit = c.want.workers;
  }
  return contenders;
}

}  // namespace sluice::scheduler
