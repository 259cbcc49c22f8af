#include "scheduler/allocate/job_allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace sluice::scheduler {
namespace {

// Of what the node with the most has kept: less is no reason to go there. Caches that fill differ, and what is kept is
// an estimate.
constexpr double kNearShare = 0.5;
constexpr double kInfiniteSeconds = std::numeric_limits<double>::infinity();

// The factor of a job's bids. Jobs about to end do not outbid all others: their remaining time counts as a minute.
double worth_of(const Job& job, const Estimate& estimate, const Config& config) {
  const double gang = std::max({job.gpus, job.ranks, 1});
  const double hours =
      estimate.remaining_seconds ? std::max(*estimate.remaining_seconds, config.shortest_remaining_seconds) / 3600 : 1;
  switch (config.objective) {
    case Objective::kBalanced:
    case Objective::kCost: return job.weight * std::sqrt(gang) / std::sqrt(hours);
    case Objective::kThroughput: return job.weight * gang;
    case Objective::kCompletionTime: return job.weight / hours;
    case Objective::kFair: return job.weight;
  }
  return job.weight;
}

void set_supply(const Config& config, JobAllocation& allocation) {
  const Estimate& estimate = *allocation.estimate;
  if (allocation.adjustable && estimate.known) {
    const double knee = std::max(estimate.knee_cores, 1e-9);
    allocation.supply_per_local_core = allocation.job->placement == Placement::kRemote ? 0 : 1 / knee;
    allocation.supply_per_remote_core = estimate.efficiency() / knee;
    return;
  }
  allocation.supply_base = estimate.supply_ratio(0, *allocation.job, config);
  allocation.supply_per_remote_core = estimate.supply_ratio(1, *allocation.job, config) - allocation.supply_base;
}

// What it reads at full speed; 0: nothing bounds it.
double full_reads_of(const Estimate& estimate) {
  if (!estimate.known || !estimate.memory->read_bytes_per_sample) return 0;
  if (estimate.memory->read_bytes_per_sample->published <= 1) return 0;  // its caches serve all of it
  // At the smoothed demand: noise of one window must not move CPU from one job to another.
  return estimate.measured_knee_cores * estimate.local_rate_per_core *
         estimate.memory->read_bytes_per_sample->published;
}

void find_workers(NodeTable& nodes, JobAllocation& allocation) {
  allocation.worker_nodes.reserve(allocation.job->workers.size());
  for (const Worker& worker : allocation.job->workers) {
    const int node = nodes.index_of(worker.node);
    allocation.worker_nodes.push_back(node);
    if (worker.draining) continue;
    ++allocation.live;
    if (node == kNowhere) continue;
    ++allocation.bound;
    nodes[node].standing_millicores += allocation.job->worker_millicores;
    if (!takes_new(nodes[node], allocation)) ++allocation.outside;
  }
}

void find_hosts(const NodeTable& nodes, JobAllocation& allocation) {
  allocation.hosts.reserve(allocation.job->hosts.size());
  for (const TrainerHost& host : allocation.job->hosts) {
    HostShare share;
    share.node = nodes.index_of(host.node);
    share.ranks = host.ranks;
    share.gpus = host.gpus;
    share.held = host.request_millicores;
    share.part = static_cast<double>(host.ranks) / std::max(allocation.job->ranks, 1);
    allocation.hosts.push_back(share);
  }
}

void find_near_data(const NodeTable& nodes, JobAllocation& allocation) {
  double most = 0;
  for (const KeptData& kept : allocation.job->kept) most = std::max(most, kept.bytes);
  for (const KeptData& kept : allocation.job->kept)
    if (const int node = nodes.index_of(kept.node); node != kNowhere && kept.bytes > kNearShare * most)
      allocation.near_data.push_back(node);
  std::sort(allocation.near_data.begin(), allocation.near_data.end());
}

}  // namespace

void occupy(std::span<NodeState> states, int node, const JobAllocation& allocation, int workers) {
  states[node].worker_millicores += workers * allocation.worker_millicores;
  states[node].memory_bytes -= workers * allocation.job->worker_memory_bytes;
  if (allocation.worker_traffic == 0) return;
  const double traffic = workers * allocation.worker_traffic;
  states[node].sends_bytes_per_second -= traffic * (1 - allocation.part_on(node));
  for (const HostShare& host : allocation.hosts)
    if (host.node != kNowhere && host.node != node) states[host.node].receives_bytes_per_second -= traffic * host.part;
}

bool sends(std::span<const NodeState> states, int node, const JobAllocation& allocation) {
  const double traffic = allocation.worker_traffic * (1 - allocation.part_on(node));
  return traffic == 0 || traffic <= states[node].sends_bytes_per_second + states[node].network_rounding;
}

bool receives(std::span<const NodeState> states, int node, const JobAllocation& allocation) {
  if (allocation.worker_traffic == 0) return true;
  return std::all_of(allocation.hosts.begin(), allocation.hosts.end(), [&](const HostShare& host) {
    if (host.node == kNowhere || host.node == node || host.part <= 0) return true;
    return allocation.worker_traffic * host.part <=
           states[host.node].receives_bytes_per_second + states[host.node].network_rounding;
  });
}

std::vector<JobAllocation> make_allocations(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config,
                                            std::vector<JobPlan>& plans) {
  const std::vector<const Job*> jobs = jobs_by_id(snapshot);
  std::unordered_map<std::string_view, int> quotas;
  for (int i = 0; i < std::ssize(snapshot.quotas); ++i) quotas.emplace(snapshot.quotas[i].name, i);
  std::unordered_map<std::string_view, int> storages;
  for (int i = 0; i < std::ssize(snapshot.storages); ++i) storages.emplace(snapshot.storages[i].name, i);

  plans.reserve(jobs.size());
  std::vector<JobAllocation> allocations(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    JobAllocation& allocation = allocations[i];
    allocation.job = jobs[i];
    plans.push_back(
        {.id = allocation.job->id, .estimate = estimate_of(*allocation.job, snapshot.taken_at_seconds, config)});
    allocation.estimate = &plans.back().estimate;
    allocation.adjustable =
        allocation.job->local_adjustable && allocation.job->running && allocation.job->mode == Mode::kAuto;
    allocation.target = target_of(*allocation.job, *allocation.estimate, config);
    allocation.worker_millicores = allocation.job->worker_millicores;
    allocation.groups = nodes.groups_open_to(*allocation.job);
    allocation.held_workers = allocation.job->allocated_workers;
    allocation.least_workers = allocation.job->min_workers;
    allocation.priority = allocation.job->priority;
    if (allocation.job->bytes_per_sample && allocation.estimate->known)
      allocation.worker_traffic =
          allocation.estimate->remote_rate_per_core * allocation.worker_cores() * *allocation.job->bytes_per_sample;
    allocation.ends_soon =
        allocation.estimate->remaining_seconds.value_or(kInfiniteSeconds) < config.worker_pays_after_seconds;
    allocation.worth = worth_of(*allocation.job, *allocation.estimate, config);
    set_supply(config, allocation);
    find_workers(nodes, allocation);
    find_hosts(nodes, allocation);
    find_near_data(nodes, allocation);
    if (const auto quota = quotas.find(allocation.job->quota); !allocation.job->quota.empty() && quota != quotas.end())
      allocation.quota = quota->second;
    if (const auto storage = storages.find(allocation.job->storage); storage != storages.end()) {
      allocation.full_reads = full_reads_of(*allocation.estimate);
      if (allocation.full_reads > 0) allocation.storage = storage->second;
    }
    if (allocation.job->mode == Mode::kRecommend) {
      allocation.advised = allocation.target;
      allocation.target = {allocation.job->allocated_workers, allocation.target.reason, TargetKind::kHeld};
    }
    allocation.limit = allocation.target.workers;
    allocation.spread = Spread(*allocation.job);
  }
  return allocations;
}

}  // namespace sluice::scheduler
