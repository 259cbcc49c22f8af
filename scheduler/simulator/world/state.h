// The true state of the simulation at one moment. Policies never see it: exporter.h shows them metrics.
//
// Units: CPU grants are integer millicores as in the scheduler's contract. Supply and need are cores, in units of local
// cores of the job (a remote core counts Physics::remote_efficiency).
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "scheduler/model/snapshot.h"
#include "scheduler/simulator/world/cluster.h"
#include "scheduler/simulator/world/workload.h"

namespace sluice::simulator {

// A trainer's claim on the CPU of one of its hosts, in cores.
struct CpuClaim {
  double request = 0;
  double most = 0;  // that it may and can use
  double need = 0;  // at which its part of the gang is saturated

  friend bool operator==(const CpuClaim&, const CpuClaim&) = default;
};

struct NodeState {
  std::string name;
  int gpus = 0;
  int free_gpus = 0;
  std::int64_t capacity_millicores = 0;
  std::int64_t local_millicores = 0;   // requests of trainers' local CPU
  std::int64_t worker_millicores = 0;  // of data workers, starting and draining ones included
  double trainer_cores = 0;            // CPU that trainers' feeders may use now: HostState::cores of all of them
  double network_gbps = 0;
  bool spot = false;
  bool up = true;
  bool cordoned = false;
  int down_reasons = 0;  // failures and incidents that keep it down at present
  int cordon_reasons = 0;
  std::vector<int> trainers;  // jobs with a host entry here

  // The last answer of share_host_cpu(), and to what: most often the same is asked again.
  std::vector<CpuClaim> claims;
  double claimed_cores = -1;  // of so many
  double claim_level = 1;

  std::int64_t free_millicores() const { return up ? capacity_millicores - local_millicores - worker_millicores : 0; }
};

struct HostState {
  int node = 0;
  int gpus = 0;
  std::int64_t request_millicores = 0;
  std::int64_t limit_millicores = 0;
  double cores = 0;           // CPU that it may use now: the request, and its part of the idle CPU
  double supply = 0;          // what that CPU supplies
  double network_factor = 1;  // share of the remote supply that the host's network lets in
};

// The traffic from a job's data workers at the speed that an unlimited network would give.
struct RemoteFlow {
  struct Part {
    int node = 0;
    double share = 0;
    double leaves = 0;  // of the whole, without the part for the node's own trainer, which crosses no network
  };
  double gbps = 0;
  std::vector<Part> parts;  // where it comes from; the shares add up to 1
};

struct WorkerState {
  std::string name;
  int node = -1;  // -1: found no room yet
  std::int64_t millicores = 0;
  double created_seconds = 0;
  double ready_seconds = 0;  // delivers from then on, if it has a node
  double warm_seconds = 0;   // at full speed from then on
  double gone_seconds = -1;  // >= 0: draining, its room is free from then on
  double cpu_level = 1;      // CPU that it may use now, over its request
};

// Totals since the job's start, as counters of an exporter.
struct Counters {
  double at_seconds = 0;
  double samples = 0;
  double batches = 0;
  double compute_seconds = 0;
  double wait_seconds = 0;
  double local_samples = 0;
  double local_busy_core_seconds = 0;
  double remote_samples = 0;
  double remote_busy_core_seconds = 0;
  double blocked_thread_seconds = 0;
  double read_bytes = 0;   // from the storage
  double queue_share = 0;  // a gauge: the full share of the prefetch queue from this moment on
};

// What changes per second while nothing happens.
struct Rates {
  double speed = 0;          // share of full speed: seconds of ideal running time per second
  double supply_ratio = 0;   // of what CPU, network and storage give, over what full speed takes
  double queue_share = 0;    // the full share of the prefetch queue
  double local_supply = 0;   // cores
  double remote_supply = 0;  // local-equivalent cores that reach the trainer
  double local_cores = 0;    // CPU given
  double remote_cores = 0;
  Counters per_second;
};

enum class Phase { kFuture, kWaiting, kRunning, kFinished };

struct JobState {
  const JobSpec* spec = nullptr;
  int index = 0;
  Phase phase = Phase::kFuture;
  double knee_cores = 0;  // of the whole gang, at the present cost of a sample
  std::vector<HostState> hosts;
  std::vector<WorkerState> workers;  // in order of creation; once it has ended, those that still drain
  RemoteFlow flow;                   // as of the last change of the rates
  int allocated_workers = 0;
  int next_worker = 0;
  double done_seconds = 0;  // of ideal_seconds
  double first_start_seconds = -1;
  double start_seconds = -1;
  double fast_seconds = -1;
  double finish_seconds = -1;
  double evaluation_ends_seconds = -1;  // >= 0: it evaluates
  int epoch = 0;
  int block = 0;             // of its data set (data_cache.h), which it reads now
  double fetched_share = 0;  // of that block: what reaches the storage
  int cost_step = 0;
  Rates rates;
  double updated_seconds = 0;  // counters and done_seconds hold for this moment
  Counters counters;
  std::deque<Counters> history;  // at every change of the rates, the oldest that a window may need first
  std::uint64_t version = 0;     // of the rates: tells an outdated prediction of the next milestone
  bool dirty = true;             // the rates have to be computed anew
  bool workers_changed = true;   // since the last snapshot; also when one of them has become ready
  bool hosts_changed = true;     // since the last snapshot

  // The memory that the scheduler handed out for its next decision.
  std::optional<scheduler::EstimatorMemory> memory;

  // Totals for the report.
  double last_arrival_seconds = 0;             // of any job
  double busy_gpu_seconds = 0;                 // work that is lost with its node and done again counts twice
  double busy_gpu_seconds_while_arriving = 0;  // until then
  double allocated_gpu_seconds = 0;
  double core_seconds = 0;
  double worker_core_seconds = 0;  // of these, of its data workers
  int workers_started = 0;
  int allocation_changes = 0;
  int restarts = 0;
  double requeued_seconds = 0;
};

}  // namespace sluice::simulator
