// From grants to speed: how CPU, network and storage turn into each job's rate of progress.
//
//   supply  L = sum over hosts of local_supply_cores(cores)     R = remote_efficiency * cores of ready workers
//   ratio   x = (L + R) / need, on the worst-fed host of the gang (remote supply goes where it is needed most)
//   speed   f = progress(x), less what interference, a full network or a full storage take
//
// Thread safety: pure functions on the state they are given.
#pragma once

#include <vector>

#include "scheduler/simulator/world/state.h"

namespace sluice::simulator {

// Sets HostState::cores and ::supply of all trainers on a node. Requests are guaranteed. CPU that is idle beyond them
// is shared in proportion to requests, up to limits and to the CPU that a job can use.
void share_host_cpu(NodeState& node, int node_index, std::vector<JobState>& jobs, const Physics& physics);

// Sets WorkerState::cpu_level of the running jobs' workers. CPU that is idle beyond the requests of trainers and
// workers goes to the node's workers, up to Physics::worker_limit_factor, as share_host_cpu() divides it. A job whose
// workers get more or less is dirty then. REQUIRES: share_host_cpu() was called for every changed node
void share_idle_cpu_with_workers(const std::vector<NodeState>& nodes, std::vector<JobState>& jobs,
                                 const std::vector<int>& running, double now_seconds, const Physics& physics);

// Shrinks what remote workers can deliver where the network of a host or of a worker's node is full. Sets
// JobState::flow of the dirty jobs and HostState::network_factor of all running ones. REQUIRES: share_host_cpu() was
// called for every changed node
void share_network(const std::vector<NodeState>& nodes, std::vector<JobState>& jobs, const std::vector<int>& running,
                   double now_seconds, const Physics& physics);

// The rates of a running job. `storage_ratio`: its share of the storage over what full speed needs.
Rates rates_of(const JobState& job, const std::vector<NodeState>& nodes, double now_seconds, double storage_ratio,
               const Physics& physics);

// Seconds of training at full speed in an epoch; 0: one epoch.
double epoch_seconds(const JobSpec& job, const Physics& physics);

// Gb/s that a job takes in at full speed, from the storage or a cache.
double read_gbps(const JobSpec& job, const Cluster& cluster);

// Gb/s that a job reads from the storage at full speed now.
double storage_need_gbps(const JobState& job, const Cluster& cluster);

// Adds `seconds` of the present rates to counters, progress and totals.
void advance(JobState& job, double now_seconds);

// Samples per second and GPU at full speed: a unit, no more.
inline constexpr double kSamplesPerSecondPerGpu = 1000;

}  // namespace sluice::simulator
