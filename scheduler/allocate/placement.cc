#include "scheduler/allocate/placement.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "scheduler/allocate/keeping_order.h"
#include "scheduler/allocate/node_ranking.h"
#include "scheduler/allocate/sort_by_key.h"
#include "scheduler/allocate/worker_pool.h"

namespace sluice::scheduler {
namespace {

class Placer {
 public:
  Placer(std::vector<JobAllocation>& allocations, NodeTable& nodes, Growth& growth, Budgets budgets)
      : allocations_(allocations),
        nodes_(nodes),
        growth_(growth),
        budgets_(std::move(budgets)),
        division_(nodes),
        no_place_(allocations.size()) {
    for (int node = 0; node < nodes.size(); ++node)
      nodes[node].crowded = nodes[node].standing_millicores > nodes[node].free_for_workers();
    order_.resize(allocations.size());
    std::iota(order_.begin(), order_.end(), 0);
    sort_by_key(order_, [this](int index) { return value_key(index); });
  }

  void run() {
    growth_.begin_placing();
    for (const int index : order_) keep(allocations_[index]);
    NodeRanking ranking(nodes_);
    // First those with the least choice: few groups of nodes, then large workers.
    sort_by_key(order_, [this](int index) { return choice(allocations_[index]); });
    divide();
    bool all_placed = true;
    for (const int index : order_) all_placed &= place_new(allocations_[index], ranking);
    // In sums a network was only guessed to be full: on real nodes there may be more.
    const bool guessed = std::any_of(allocations_.begin(), allocations_.end(), [](const JobAllocation& allocation) {
      return allocation.blocked == Reason::kNetwork;
    });
    if (!all_placed || evicted_ || guessed) fill(ranking);
    for (JobAllocation& allocation : allocations_) allocation.by_quotas_budget = budgets_.quota_is_tighter(allocation);
  }

 private:
  std::tuple<bool, int, double> value_key(int index) const {
    const JobAllocation& allocation = allocations_[index];
    return {!allocation.target.is_held(), -allocation.priority, -allocation.last_value};
  }

  int open_groups(const JobAllocation& allocation) const {
    return std::popcount(allocation.groups & nodes_.usable_groups());
  }

  std::tuple<int, int, std::int64_t> choice(const JobAllocation& allocation) const {
    return {-allocation.priority, open_groups(allocation), -allocation.worker_millicores};
  }

  // Books the workers that have no place yet.
  void divide() {
    for (const int index : order_) {
      const JobAllocation& allocation = allocations_[index];
      const std::int64_t missing = allocation.workers - std::ssize(allocation.occupied);
      division_.take(allocation.groups, division_.available(allocation.groups, std::max<std::int64_t>(missing, 0) *
                                                                                   allocation.worker_millicores));
    }
  }

  // `refund`: what others would give back first.
  bool affords(const JobAllocation& allocation, const NodeState& state, const Refund& refund = {}) const {
    return allocation.price_per_hour_on(state) <= budgets_.left_for(allocation, refund) + 1e-9;
  }

  // Why a node takes no more workers of the job; none: it takes one. `states`: of all nodes.
  std::optional<Reason> refusal_of(const JobAllocation& allocation, std::span<const NodeState> states, int node,
                                   const Refund& refund = {}) const {
    const NodeState& state = states[node];
    if (state.free_for_workers() < allocation.worker_millicores) return Reason::kCpu;
    if (state.memory_bytes < allocation.job->worker_memory_bytes) return Reason::kCpu;
    if (!allocation.spread.admits(*state.node)) return Reason::kSpread;
    if (!sends(states, node, allocation) || !receives(states, node, allocation)) return Reason::kNetwork;
    if (!affords(allocation, state, refund)) return Reason::kBudget;
    return std::nullopt;
  }

  void take(JobAllocation& allocation, int node) {
    occupy(nodes_.states(), node, allocation, 1);
    budgets_.spend(allocation, allocation.price_per_hour_on(nodes_[node]));
    allocation.occupied.push_back(node);
    allocation.spread.add(*nodes_[node].node, 1);
    if (nodes_[node].schedulable) division_.settle(allocation.groups, nodes_.bit(node), allocation.worker_millicores);
  }

  std::optional<Reason> refusal_of(const JobAllocation& allocation, int node) const {
    return refusal_of(allocation, nodes_.states(), node);
  }

  // Why an existing worker cannot stay on its node. Memory and traffic out of the node are no reason: it uses both now,
  // and new workers come after all existing ones.
  std::optional<Reason> displaced_from(const JobAllocation& allocation, int node) const {
    if (nodes_[node].free_for_workers() < allocation.worker_millicores) return Reason::kCpu;
    if (!receives(nodes_.states(), node, allocation)) return Reason::kNetwork;
    if (!affords(allocation, nodes_[node])) return Reason::kBudget;
    return std::nullopt;
  }

  static void reserve_for_existing(JobAllocation& allocation) {
    allocation.kept.reserve(allocation.live);
    allocation.occupied.reserve(std::max(allocation.live, allocation.workers));
  }

  // Whether the networks carry what all live workers of the job send together.
  bool all_received(const JobAllocation& allocation) const {
    if (allocation.worker_traffic == 0) return true;
    return std::all_of(allocation.hosts.begin(), allocation.hosts.end(), [&](const HostShare& host) {
      if (host.node == kNowhere || host.part <= 0) return true;
      return allocation.live * allocation.worker_traffic * host.part <= nodes_[host.node].receives_bytes_per_second;
    });
  }

  // The common case: all stay, and none needs to be chosen.
  bool stays_whole(JobAllocation& allocation) {
    if (allocation.bound != allocation.live || allocation.workers < allocation.live) return false;
    if (budgets_.bound(allocation)) return false;
    if (!all_received(allocation)) return false;
    for (std::size_t i = 0; i < allocation.worker_nodes.size(); ++i)
      if (allocation.worker_nodes[i] != kNowhere && nodes_[allocation.worker_nodes[i]].crowded) return false;
    reserve_for_existing(allocation);
    for (std::size_t i = 0; i < allocation.worker_nodes.size(); ++i) {
      if (allocation.any_drains() && allocation.job->workers[i].draining) continue;
      take(allocation, allocation.worker_nodes[i]);
      allocation.kept.push_back(&allocation.job->workers[i]);
    }
    return true;
  }

  void keep(JobAllocation& allocation) {
    if (stays_whole(allocation)) return;
    reserve_for_existing(allocation);
    std::optional<Reason> displaced;
    // Workers of a held target are not given up for lack of room: the cluster may hide its room just as it hides the
    // metrics.
    const bool held = allocation.target.is_held();
    const int most = std::max(allocation.workers, allocation.assured_workers());
    for (const int worker : in_order_of_keeping(allocation, nodes_)) {
      if (std::ssize(allocation.kept) == most) break;
      const int node = allocation.worker_nodes[worker];
      if (node == kNowhere) {  // its place is found once the existing ones of all jobs have theirs
        allocation.kept.push_back(&allocation.job->workers[worker]);
        continue;
      }
      if (const auto reason = displaced_from(allocation, node); reason && !held) {
        displaced = reason;
        continue;
      }
      take(allocation, node);
      allocation.kept.push_back(&allocation.job->workers[worker]);
    }
    if (!displaced) return;
    // A number of replicas cannot say "this one, but elsewhere": the displaced ones are missing until the next
    // decision.
    while (allocation.workers > std::ssize(allocation.kept)) give_back(allocation, *displaced);
  }

  void give_back(JobAllocation& allocation, Reason reason) {
    release(allocation);
    allocation.blocked = reason;
    no_place_[&allocation - allocations_.data()] = 1;
  }

  // One that was granted, and has no place.
  void release(JobAllocation& allocation) {
    growth_.give_back_worker(allocation);
    division_.give_back(allocation.groups, allocation.worker_millicores);
  }

  // A host of the job whose network carries no more: only a worker on that host itself can still reach all ranks.
  int full_host(const JobAllocation& allocation) const {
    if (receives(nodes_.states(), kNowhere, allocation)) return kNowhere;
    int full = kNowhere;
    for (const HostShare& host : allocation.hosts) {
      if (host.node == kNowhere) continue;
      full = host.node;
      if (receives(nodes_.states(), host.node, allocation)) break;
    }
    return full;
  }

  // A node for one more worker that has none; kNowhere when there is no room, or none that the budget allows.
  int find(JobAllocation& allocation, NodeRanking& ranking) {
    refusal_ = Reason::kCpu;  // or what else keeps it from the best node that has the CPU
    if (const int host = full_host(allocation); host != kNowhere) {
      refusal_ = Reason::kNetwork;
      if (!takes_new(nodes_[host], allocation) || refusal_of(allocation, host)) return kNowhere;
      take(allocation, host);
      return host;
    }
    bool yields = open_groups(allocation) > 1;  // groups of nodes that workers with less choice need
    bool yielded = false;
    const auto suits = [&](int candidate) {
      if (!takes_new(nodes_[candidate], allocation)) return Suits::kNo;
      const std::optional<Reason> refusal = refusal_of(allocation, candidate);
      if (refusal_ == Reason::kCpu && refusal) refusal_ = *refusal;
      if (refusal) return Suits::kNo;
      if (!yields || division_.move_to(allocation.groups, nodes_.bit(candidate), allocation.worker_millicores))
        return Suits::kYes;
      yielded = true;
      return Suits::kNoneOfItsGroup;
    };
    int node = ranking.take(allocation.worker_millicores, allocation.groups, std::ref(suits), allocation.near_data);
    if (node == kNowhere && yielded) {  // the other groups have its CPU only in sum
      yields = false;
      node = ranking.take(allocation.worker_millicores, allocation.groups, std::ref(suits), allocation.near_data);
    }
    if (node != kNowhere) take(allocation, node);
    return node;
  }

  // False when some of the workers that were granted have no place.
  bool place_new(JobAllocation& allocation, NodeRanking& ranking) {
    bool all = true;
    if (allocation.bound < allocation.live)
      std::erase_if(allocation.kept, [&](const Worker* worker) {
        const bool unbound = allocation.worker_nodes[worker - allocation.job->workers.data()] == kNowhere;
        if (!unbound || find(allocation, ranking) != kNowhere || allocation.target.is_held()) return false;
        give_back(allocation, refusal_);
        all = false;
        return true;
      });
    // Nor can it say so of one that made way.
    while (allocation.live > std::ssize(allocation.kept) && allocation.workers > std::ssize(allocation.kept))
      release(allocation);
    allocation.new_nodes.reserve(std::max<std::ptrdiff_t>(allocation.workers - std::ssize(allocation.kept), 0));
    while (allocation.workers > std::ssize(allocation.kept) + std::ssize(allocation.new_nodes)) {
      int node = find(allocation, ranking);
      if (node == kNowhere) {
        if (const int cleared = make_room(allocation); cleared != kNowhere) {
          ranking.refresh(cleared);
          node = find(allocation, ranking);
        }
      }
      if (node == kNowhere) {
        while (allocation.workers > std::ssize(allocation.kept) + std::ssize(allocation.new_nodes))
          give_back(allocation, refusal_);
        return false;
      }
      allocation.new_nodes.push_back(node);
    }
    return all;
  }

  // A worker may find no node although there is room enough in sum. Then smaller workers of a lower priority make way,
  // on the node where the least has to go, if the worker can then go there. Otherwise small workers would starve large
  // ones of a higher priority. Returns the node; kNowhere when no job could make way on any.
  int make_room(const JobAllocation& allocation) {
    if (--searches_left_ < 0) return kNowhere;
    const std::span<const NodeState> states = nodes_.states();
    std::vector<NodeState> cleared(states.begin(), states.end());  // as if all of them went
    std::vector<Refund> refund(nodes_.size());
    for (const JobAllocation& other : allocations_) {
      if (!yields_to(allocation, other)) continue;
      for (const int node : other.occupied) {
        occupy(cleared, node, other, -1);
        const double price_per_hour = other.price_per_hour_on(nodes_[node]);
        refund[node].all += price_per_hour;
        if (other.quota == allocation.quota) refund[node].of_its_quota += price_per_hour;
      }
    }
    const auto missing = [&](int node) { return allocation.worker_millicores - nodes_[node].free_for_workers(); };
    int best = kNowhere;
    for (int node = 0; node < nodes_.size(); ++node) {
      if (!takes_new(nodes_[node], allocation) || refusal_of(allocation, cleared, node, refund[node])) continue;
      if (best == kNowhere || missing(node) < missing(best)) best = node;
    }
    if (best == kNowhere) return kNowhere;
    clear(allocation, best, [&](const JobAllocation& other) {
      return other.quota == allocation.quota || refusal_of(allocation, best) != Reason::kBudget ||
             !budgets_.quota_is_tighter(allocation);
    });
    clear(allocation, best, [](const JobAllocation&) { return true; });
    return best;
  }

  // Workers of those that yield, and that it `helps` to stop, make way on the node until it takes a worker of the job.
  // The lowest first; order_ has the highest priority in front.
  template <typename Helps>
  void clear(const JobAllocation& allocation, int node, const Helps& helps) {
    for (auto index = order_.rbegin(); index != order_.rend(); ++index)
      if (JobAllocation& other = allocations_[*index]; yields_to(allocation, other))
        while (refusal_of(allocation, node) && helps(other) && evict(other, node)) continue;
  }

  static bool yields_to(const JobAllocation& allocation, const JobAllocation& other) {
    return other.priority < allocation.priority && !other.target.is_held();
  }

  // Takes the job's least worker off a node. A job that yields has had nothing new placed yet: that is done by
  // priority. It may bid again afterwards, for what the other one leaves of limits that both share.
  bool evict(JobAllocation& allocation, int node) {
    const auto place = std::find(allocation.occupied.begin(), allocation.occupied.end(), node);
    if (place == allocation.occupied.end()) return false;
    allocation.occupied.erase(place);
    allocation.spread.add(*nodes_[node].node, -1);
    const std::vector<int> order = in_order_of_keeping(allocation, nodes_);
    for (auto worker = order.rbegin(); worker != order.rend(); ++worker)
      if (allocation.worker_nodes[*worker] == node &&
          std::erase(allocation.kept, &allocation.job->workers[*worker]) > 0)
        break;
    occupy(nodes_.states(), node, allocation, -1);
    if (nodes_[node].schedulable) division_.unsettle(nodes_.bit(node), allocation.worker_millicores);
    budgets_.spend(allocation, -allocation.price_per_hour_on(nodes_[node]));
    growth_.give_back_worker(allocation);
    // Its own limit keeps it from no worker any more, and is not why it has so few.
    if (!is_refused(allocation)) allocation.blocked = Reason::kCpu;
    evicted_ = true;
    return true;
  }

  // Whether what others hold keeps it from more.
  static bool is_refused(const JobAllocation& allocation) {
    return allocation.blocked == Reason::kCpu || allocation.blocked == Reason::kQuota ||
           allocation.blocked == Reason::kBudget || allocation.blocked == Reason::kNetwork ||
           allocation.blocked == Reason::kStorage;
  }

  // The bids go on, each worker to a real place at once.
  void fill(NodeRanking& ranking) {
    std::priority_queue<Growth::Bid> bids;
    for (int i = 0; i < std::ssize(allocations_); ++i) {
      JobAllocation& allocation = allocations_[i];
      // What others had been granted, and gave back, may be enough for it now.
      if (allocation.workers < allocation.assured_workers()) continue;  // what it has is kept, with a place or without
      if (is_refused(allocation) && !no_place_[i]) allocation.blocked.reset();
      if (const auto bid = growth_.next_bid(i)) bids.push(*bid);
    }
    while (!bids.empty()) {
      const Growth::Bid bid = bids.top();
      bids.pop();
      JobAllocation& allocation = allocations_[bid.allocation];
      if (bid.host == kNowhere)
        fill_one(allocation, bid, ranking);
      else
        growth_.serve(bid);
      if (const auto next = growth_.next_bid(bid.allocation)) bids.push(*next);
    }
  }

  void fill_one(JobAllocation& allocation, Growth::Bid bid, NodeRanking& ranking) {
    bid.workers = 1;
    if (!growth_.serve(bid)) return;
    std::optional<Reason> refusal;
    for (int worker : in_order_of_keeping(allocation, nodes_)) {  // one that was about to go
      const Worker* candidate = &allocation.job->workers[worker];
      const int node = allocation.worker_nodes[worker];
      if (node == kNowhere ||
          std::find(allocation.kept.begin(), allocation.kept.end(), candidate) != allocation.kept.end())
        continue;
      refusal = refusal_of(allocation, node);
      if (refusal) continue;  // others may have taken up meanwhile what it left
      take(allocation, node);
      allocation.kept.push_back(candidate);
      return;
    }
    // One of them goes, so another one would be its successor.
    if (allocation.live > std::ssize(allocation.kept)) return give_back(allocation, refusal.value_or(Reason::kCpu));
    const int node = find(allocation, ranking);
    if (node != kNowhere)
      allocation.new_nodes.push_back(node);
    else
      give_back(allocation, refusal_);
  }

  std::vector<JobAllocation>& allocations_;
  NodeTable& nodes_;
  Growth& growth_;
  Budgets budgets_;
  WorkerPool division_;  // of the workers without a place, over the groups of nodes
  std::vector<int> order_;
  int searches_left_ = 100;        // for room that others have to make: each looks at everything
  bool evicted_ = false;           // a worker made way
  Reason refusal_ = Reason::kCpu;  // why the last worker found no node
  std::vector<char> no_place_;     // per allocation: a worker that was granted found no node
};

}  // namespace

void place(std::vector<JobAllocation>& allocations, NodeTable& nodes, Growth& growth, Budgets budgets) {
  Placer(allocations, nodes, growth, std::move(budgets)).run();
}

}  // namespace sluice::scheduler
