// Step 4 of decide(), "grow": how the cluster's CPU is divided, piece by piece.
//
// Every job bids for its next piece, and the highest bid is served. The job then bids again, lower (progress is
// concave), until it reaches its target or nothing is left for it. Bids are ordered by
//   tier      1. workers up to a job's minimum, 2. growth, 3. workers that leftover targets hold
//   priority  within a tier, strictly
//   value     worth * (df / core), by the objective; +10 % for workers and CPU that the job holds already (hysteresis)
//   id        so that the outcome does not depend on the order of the input
// A piece is local while the job's own hosts have a free core (efficiency 1), else remote (mu_R / mu_L). Pieces shrink
// as the cluster fills, so that equal jobs end up within a worker of each other.
//
// Exchange, with several groups of nodes: a job that finds no CPU bids for cores of another job's feeders on a host of
// both, beyond their floor. That job gets a worker on other nodes, which does as much for it as those cores did.
//
// Growth decides only sums, one for each group of nodes; placement.h finds a node for each worker. Sums suffice because
// data workers are interchangeable between the nodes of a group. Any numbers that fit in sum (worker_pool.h), and
// beside the feeders of each host, can be placed (workers of one size). That structure is a polymatroid: with concave
// values the greedy is optimal there, but for the sizes of pieces. Source: Federgruen and Groenevelt, "The greedy
// procedure for resource allocation problems", 1986.
//
// Thread safety: none.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "scheduler/allocate/budgets.h"
#include "scheduler/allocate/host_network.h"
#include "scheduler/allocate/job_allocation.h"
#include "scheduler/allocate/node_table.h"
#include "scheduler/allocate/storage_reads.h"
#include "scheduler/allocate/worker_pool.h"
#include "scheduler/allocate/worker_price.h"
#include "scheduler/model/config.h"
#include "scheduler/model/progress.h"

namespace sluice::scheduler {

class Growth {
 public:
  // Lifetime: refers to all arguments.
  Growth(std::vector<JobAllocation>& allocations, NodeTable& nodes, const ClusterSnapshot& snapshot,
         const Config& config);

  // Books the assured workers of held targets against the pool and every limit, and what the CPU of every job reads
  // against its storage, before the first bid.
  void hold_assured();

  // Serves bids until none is left.
  void run();

  // Books the workers of a job that does not bid here against the pool, the quotas and the budget, and its reads
  // against its storage.
  void hold(const JobAllocation& other);

  // To be called before placement. It checks the network of each worker's node, so growth stops counting traffic. It
  // also stops the exchange of feeders' CPU.
  void begin_placing() { host_network_.reset(), feeders_.clear(); }

  // A worker turned out to have no place: its part of the pool is free again.
  void give_back_worker(JobAllocation& allocation);

  struct Bid {
    std::int64_t rank = 0;  // tier and priority
    double value = 0;
    int allocation = 0;
    int host = kNowhere;     // local piece: index of JobAllocation::hosts; else remote
    std::int64_t local = 0;  // millicores of a local piece
    int workers = 0;         // of a remote piece
    int donor = kNowhere;    // allocation whose feeders leave the local piece, for a worker

    // The lower index wins a tie.
    friend bool operator<(const Bid& a, const Bid& b) {
      if (a.rank != b.rank) return a.rank < b.rank;
      if (a.value != b.value) return a.value < b.value;
      return b.allocation < a.allocation;
    }
  };

  // The job's bid for its next piece; none when it has reached its target, or can get no more.
  std::optional<Bid> next_bid(int index);

  // Grants the piece that was bid for, or a part of it. False: nothing could be granted, and the job does not bid for
  // such a piece again.
  bool serve(const Bid& bid);

 private:
  std::optional<Bid> own_bid(int index, double x);
  std::optional<Bid> local_bid(int index, double x);
  // For CPU of the job's own hosts that another job's feeders would leave, as that job gets a worker instead.
  std::optional<Bid> exchange_bid(int index, double x);
  // How much of a node's CPU the job's feeders leave for one worker more; 0: it cannot be exchanged.
  std::int64_t leaves_for_worker(int donor, int node);
  std::optional<Bid> remote_bid(int index, double x);
  double piece_cores(const JobAllocation& allocation, double x, double efficiency_slope) const;
  double value_of(const JobAllocation& allocation, double x, double gain_x, double cores, bool held) const;
  bool serve_local(JobAllocation& allocation, const Bid& bid);
  bool serve_remote(JobAllocation& allocation, const Bid& bid);
  bool serve_exchange(JobAllocation& allocation, const Bid& bid);
  // How many of the pieces of CPU find reads, each of which adds so much to the job's supply ratio. Where none does,
  // the job is blocked.
  std::int64_t with_reads(JobAllocation& allocation, std::int64_t pieces, double supply_per_piece);
  // How much of `millicores` the host's feeders can get beside the workers that others hold.
  std::int64_t local_within(int node, std::int64_t millicores);
  // What so many more workers, or fewer, hold of the pool.
  std::int64_t pooled_millicores(const JobAllocation& allocation, int more_workers) const;
  // The job's workers take their part of the pool, the quotas and the budget.
  void book(const JobAllocation& allocation);
  // So many more workers count against quota and budget, wherever they are.
  void count(const JobAllocation& allocation, int workers);
  int within_budget(const JobAllocation& allocation, int workers) const;

  std::vector<JobAllocation>& allocations_;
  NodeTable& nodes_;
  const Config& config_;
  const ProgressTable& progress_;
  const double flat_supply_ratio_;
  std::vector<std::int64_t> quota_left_;
  Budgets budgets_;
  double cheapest_price_ = 0;                // of a core, where workers are or may go; placement finds which of these
  std::optional<HostNetwork> host_network_;  // none once placement has begun
  StorageReads storage_reads_;
  WorkerPrice worker_price_;
  std::vector<int> local_bidders_;  // per node: jobs whose feeders may get more of it
  std::vector<char> local_closed_;  // per allocation: its hosts have nothing left for it
  WorkerPool pool_;
  std::vector<std::pair<int, int>> feeders_;  // nodes, and the allocations with feeders there, sorted; or no exchange
  std::vector<char> donor_closed_;            // per allocation: it gets no worker for its feeders' CPU
  int active_ = 1;  // bidders that may still get workers: the spare cores are cut up among these
};

}  // namespace sluice::scheduler
