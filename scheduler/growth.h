// Step "grow" of decide(): who gets the cluster's CPU, piece by piece.
//
// Every job bids for its next piece; the highest bid is served; the job bids again, lower (progress is concave), until
// it has what it wants or nothing is left for it. Bids are ordered by
//   tier      1. workers up to a job's minimum, 2. growth, 3. what jobs hold that nothing has been known of for long
//   priority  within a tier, strictly
//   value     worth * (df / core), by the objective; +10 % for what the job holds already (hysteresis)
//   id        so that the outcome does not depend on the order of the input
// A piece is local while the job's own hosts have a free core (efficiency 1), else remote (mu_R / mu_L), bounded by the
// network of its hosts. Pieces shrink as the cluster fills, so that equal jobs end up within a worker of each other.
//
// Only sums are decided here; which worker stands where is placement.h. Both are one because data workers are
// interchangeable between nodes: any numbers that fit in sum, and beside the feeders of each host, fit somehow (workers
// of one size). That structure is a polymatroid, on which the greedy is optimal for concave values but for the sizes of
// pieces (Federgruen and Groenevelt, "The greedy procedure for resource allocation problems", 1986).
//
// Thread safety: none.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/node_table.h"
#include "scheduler/progress.h"

namespace sluice::scheduler {

class Growth {
 public:
  // Lifetime: refers to all arguments.
  Growth(std::vector<Contender>& contenders, NodeTable& nodes, const ClusterSnapshot& snapshot, const Config& config);

  // Workers that nothing justifies taking: they hold their part of the pool and of every limit before anybody bids.
  void hold_unconditional();

  // Serves bids until none is left. `bidders`: indices of those who bid.
  void run(const std::vector<int>& bidders);

  // What somebody has who does not bid here: its part of the pool and of every limit.
  void hold(const Contender& other);

  // CPU of the pool that nobody holds.
  std::int64_t spare_millicores() const { return nodes_.pool_millicores() - used_millicores_; }

  // A worker turned out to have no place: its part of the pool is free again.
  void give_back_worker(Contender& contender);

  struct Bid {
    std::int64_t rank = 0;  // tier and priority
    double value = 0;
    int contender = 0;
    int host = kNowhere;     // local piece: index of Contender::hosts; else remote
    std::int64_t local = 0;  // millicores of a local piece
    int workers = 0;         // of a remote piece

    // The lower index wins a tie.
    friend bool operator<(const Bid& a, const Bid& b) {
      if (a.rank != b.rank) return a.rank < b.rank;
      if (a.value != b.value) return a.value < b.value;
      return b.contender < a.contender;
    }
  };

  // What the contender bids for its next piece; none when it wants none, or can get none.
  std::optional<Bid> next_bid(int index);

  // False when nothing of the piece could be granted. Then the bidder is not served that way again.
  bool serve(const Bid& bid);

 private:
  std::optional<Bid> local_bid(int index, double x) const;
  std::optional<Bid> remote_bid(int index, double x);
  double piece_cores(const Contender& c, double x, double efficiency_slope) const;
  double value_of(const Contender& c, double x, double gain_x, double cores, bool held) const;
  bool serve_local(Contender& c, const Bid& bid);
  bool serve_remote(Contender& c, const Bid& bid);
  // So many more workers count against quota, budget and network, wherever they are.
  void count(const Contender& c, int workers);
  int within_budget(const Contender& c, int workers) const;
  int within_network(const Contender& c, int workers) const;
  void take_network(const Contender& c, int workers);

  std::vector<Contender>& contenders_;
  NodeTable& nodes_;
  const Config& config_;
  const ProgressTable& progress_;
  const double flat_supply_ratio_;
  std::vector<std::int64_t> quota_left_;
  std::optional<double> budget_left_;
  double cheapest_price_ = 0;  // of a core, where workers stand or may go; which of these is for placement to find
  std::vector<double> host_network_;  // left for what remote workers send to trainers, per node
  std::vector<int> local_bidders_;    // per node: contenders whose feeders may want more of it
  std::vector<char> local_closed_;    // per contender: its hosts have nothing left for it
  std::int64_t used_millicores_ = 0;
  int active_ = 1;  // bidders that may still get workers: the spare cores are cut up among these
};

}  // namespace sluice::scheduler
