#include "scheduler/placement.h"

#include <algorithm>
#include <compare>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

#include "scheduler/node_ranking.h"

namespace sluice::scheduler {
namespace {

class Placer {
 public:
  Placer(std::vector<Contender>& contenders, NodeTable& nodes, Growth& growth, std::optional<double> budget_per_hour,
         const Config& config)
      : contenders_(contenders),
        nodes_(nodes),
        growth_(growth),
        config_(config),
        budget_left_(budget_per_hour),
        no_place_(contenders.size()) {
    for (int node = 0; node < nodes.size(); ++node)
      nodes[node].crowded = nodes[node].standing_millicores > nodes[node].free_for_workers();
    for (int i = 0; i < std::ssize(contenders); ++i) order_.push_back(i);
    std::sort(order_.begin(), order_.end(), [&](int a, int b) { return key(a) < key(b); });
  }

  void run() {
    for (const int index : order_) keep(contenders_[index]);
    NodeRanking ranking(nodes_);
    // Large workers first: they have the least choice.
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
      const auto size = [&](int i) { return contenders_[i].worker_millicores; };
      return std::make_tuple(-contenders_[a].job->priority, -size(a)) <
             std::make_tuple(-contenders_[b].job->priority, -size(b));
    });
    bool all_placed = true;
    for (const int index : order_) all_placed &= place_new(contenders_[index], ranking);
    if (!all_placed || evicted_) fill(ranking);
  }

 private:
  std::tuple<bool, int, double, int> key(int index) const {
    const Contender& c = contenders_[index];
    return {!c.want.unconditional, -c.priority, -c.last_value, index};
  }

  // `refund`: what others would give back first.
  bool affords(const Contender& c, const NodeState& state, double refund = 0) const {
    return !budget_left_ || c.price_per_hour_on(state) <= *budget_left_ + refund + 1e-9;
  }

  // Why a node takes no more of the contender's workers; none: it takes one.
  std::optional<Reason> refusal_of(const Contender& c, const NodeState& state, double refund = 0) const {
    if (state.free_for_workers() < c.worker_millicores) return Reason::kCpu;
    if (state.memory_bytes < c.job->worker_memory_bytes) return Reason::kCpu;
    if (state.network_bytes_per_second < c.worker_traffic) return Reason::kNetwork;
    if (!affords(c, state, refund)) return Reason::kBudget;
    return std::nullopt;
  }

  void take(Contender& c, int node) {
    occupy(nodes_[node], c, 1);
    if (budget_left_) *budget_left_ -= c.price_per_hour_on(nodes_[node]);
    c.occupied.push_back(node);
  }

  static void reserve_for_existing(Contender& c) {
    c.kept.reserve(c.live);
    c.occupied.reserve(std::max(c.live, c.workers));
  }

  // The common case: all stay, and nobody needs to be chosen.
  bool stays_whole(Contender& c) {
    if (c.bound != c.live || c.workers < c.live || budget_left_) return false;
    for (std::size_t i = 0; i < c.worker_nodes.size(); ++i)
      if (c.worker_nodes[i] != kNowhere && nodes_[c.worker_nodes[i]].crowded) return false;
    reserve_for_existing(c);
    for (std::size_t i = 0; i < c.worker_nodes.size(); ++i) {
      if (c.job->workers[i].draining) continue;
      take(c, c.worker_nodes[i]);
      c.kept.push_back(&c.job->workers[i]);
    }
    return true;
  }

  void keep(Contender& c) {
    if (stays_whole(c)) return;
    reserve_for_existing(c);
    std::optional<Reason> displaced;
    // Workers of an unconditional claim are not given up for want of room: the cluster may be hiding it from us just as
    // it hides the metrics.
    const bool whatever = c.want.unconditional;
    const int most = std::max(c.workers, c.assured_workers());
    for (const int worker : in_order_of_keeping(c, nodes_)) {
      if (std::ssize(c.kept) == most) break;
      const int node = c.worker_nodes[worker];
      if (node == kNowhere) {  // its place is found once everybody's existing ones have theirs
        c.kept.push_back(&c.job->workers[worker]);
        continue;
      }
      const NodeState& state = nodes_[node];
      if (!whatever && (state.free_for_workers() < c.worker_millicores || !affords(c, state))) {
        displaced = state.free_for_workers() < c.worker_millicores ? Reason::kCpu : Reason::kBudget;
        continue;
      }
      take(c, node);
      c.kept.push_back(&c.job->workers[worker]);
    }
    if (!displaced || config_.replaces_workers) return;
    // A number of replicas cannot say "this one, but elsewhere": the displaced ones are missing until the next
    // decision.
    while (c.workers > std::ssize(c.kept)) give_back(c, *displaced);
  }

  void give_back(Contender& c, Reason reason) {
    growth_.give_back_worker(c);
    c.blocked = reason;
    no_place_[&c - contenders_.data()] = 1;
  }

  // A node for one more worker that has none; kNowhere when there is no room, or none that the budget allows.
  int find(Contender& c, NodeRanking& ranking) {
    refusal_ = Reason::kCpu;  // or what else keeps it from the best node that has the CPU
    const int node = ranking.take(c.worker_millicores, [&](const NodeState& state) {
      const std::optional<Reason> refusal = refusal_of(c, state);
      if (refusal_ == Reason::kCpu && refusal) refusal_ = *refusal;
      return !refusal;
    });
    if (node != kNowhere) take(c, node);
    return node;
  }

  // False when some of the workers that were granted have no place.
  bool place_new(Contender& c, NodeRanking& ranking) {
    bool all = true;
    if (c.bound < c.live)
      std::erase_if(c.kept, [&](const Worker* worker) {
        const bool unbound = c.worker_nodes[worker - c.job->workers.data()] == kNowhere;
        if (!unbound || find(c, ranking) != kNowhere || c.want.unconditional) return false;
        give_back(c, refusal_);
        all = false;
        return true;
      });
    // Nor can it say so of one that made way.
    while (!config_.replaces_workers && c.live > std::ssize(c.kept) && c.workers > std::ssize(c.kept))
      growth_.give_back_worker(c);
    while (c.workers > std::ssize(c.kept) + std::ssize(c.new_nodes)) {
      int node = find(c, ranking);
      if (node == kNowhere) {
        if (const int cleared = make_room(c); cleared != kNowhere) {
          ranking.refresh(cleared);
          node = find(c, ranking);
        }
      }
      if (node == kNowhere) {
        while (c.workers > std::ssize(c.kept) + std::ssize(c.new_nodes)) give_back(c, refusal_);
        return false;
      }
      c.new_nodes.push_back(node);
    }
    return all;
  }

  // Where a worker finds no node although there is room enough in sum, smaller ones of a lower priority make way: on
  // the node where the least has to go, if the worker can then go there. Otherwise small workers of anybody would
  // starve large ones of the important. Returns the node; kNowhere when nobody could make way on any.
  int make_room(const Contender& c) {
    if (--searches_left_ < 0) return kNowhere;
    std::vector<NodeState> cleared(nodes_.size());  // as if all of them went
    std::vector<double> refund(nodes_.size());
    for (int node = 0; node < nodes_.size(); ++node) cleared[node] = nodes_[node];
    for (const Contender& other : contenders_) {
      if (!yields_to(c, other)) continue;
      for (const int node : other.occupied) {
        occupy(cleared[node], other, -1);
        refund[node] += other.price_per_hour_on(nodes_[node]);
      }
    }
    const auto missing = [&](int node) { return c.worker_millicores - nodes_[node].free_for_workers(); };
    int best = kNowhere;
    for (int node = 0; node < nodes_.size(); ++node) {
      if (!nodes_[node].node->schedulable || refusal_of(c, cleared[node], refund[node])) continue;
      if (best == kNowhere || missing(node) < missing(best)) best = node;
    }
    if (best == kNowhere) return kNowhere;
    // The lowest first; order_ has the highest priority in front.
    for (auto index = order_.rbegin(); index != order_.rend(); ++index)
      if (Contender& other = contenders_[*index]; yields_to(c, other))
        while (refusal_of(c, nodes_[best]) && evict(other, best)) continue;
    return best;
  }

  static bool yields_to(const Contender& c, const Contender& other) {
    return other.priority < c.priority && !other.want.unconditional;
  }

  // Takes the job's least worker off a node. Whoever yields has had nothing new placed yet: that is done by priority.
  // It may bid again afterwards, and is told then what it lacks: the one that it made way for leaves, of limits that
  // both share, what its place does not cost.
  bool evict(Contender& c, int node) {
    const auto place = std::find(c.occupied.begin(), c.occupied.end(), node);
    if (place == c.occupied.end()) return false;
    c.occupied.erase(place);
    const std::vector<int> order = in_order_of_keeping(c, nodes_);
    for (auto worker = order.rbegin(); worker != order.rend(); ++worker)
      if (c.worker_nodes[*worker] == node && std::erase(c.kept, &c.job->workers[*worker]) > 0) break;
    occupy(nodes_[node], c, -1);
    if (budget_left_) *budget_left_ += c.price_per_hour_on(nodes_[node]);
    growth_.give_back_worker(c);
    evicted_ = true;
    return true;
  }

  // The bids go on, each worker to a real place at once.
  void fill(NodeRanking& ranking) {
    std::priority_queue<Growth::Bid> bids;
    for (int i = 0; i < std::ssize(contenders_); ++i) {
      Contender& c = contenders_[i];
      // What others had been granted, and gave back, may be enough for it now.
      const bool refused = c.blocked == Reason::kCpu || c.blocked == Reason::kQuota || c.blocked == Reason::kBudget ||
                           c.blocked == Reason::kNetwork;
      if (c.workers < c.assured_workers()) continue;  // what it has is kept, with a place or without
      if (refused && !no_place_[i]) c.blocked.reset();
      if (const auto bid = growth_.next_bid(i)) bids.push(*bid);
    }
    while (!bids.empty()) {
      const Growth::Bid bid = bids.top();
      bids.pop();
      Contender& c = contenders_[bid.contender];
      if (bid.host == kNowhere)
        fill_one(c, bid, ranking);
      else
        growth_.serve(bid);
      if (const auto next = growth_.next_bid(bid.contender)) bids.push(*next);
    }
  }

  void fill_one(Contender& c, Growth::Bid bid, NodeRanking& ranking) {
    bid.workers = 1;
    if (!growth_.serve(bid)) return;
    std::optional<Reason> refusal;
    for (int worker : in_order_of_keeping(c, nodes_)) {  // one that was about to go
      const Worker* candidate = &c.job->workers[worker];
      const int node = c.worker_nodes[worker];
      if (node == kNowhere || std::find(c.kept.begin(), c.kept.end(), candidate) != c.kept.end()) continue;
      refusal = refusal_of(c, nodes_[node]);
      if (refusal) continue;  // others may have taken up meanwhile what it left
      take(c, node);
      c.kept.push_back(candidate);
      return;
    }
    const bool moves = c.live > std::ssize(c.kept);  // one goes, and another one comes
    if (moves && !config_.replaces_workers) return give_back(c, refusal.value_or(Reason::kCpu));
    const int node = find(c, ranking);
    if (node != kNowhere)
      c.new_nodes.push_back(node);
    else
      give_back(c, refusal_);
  }

  std::vector<Contender>& contenders_;
  NodeTable& nodes_;
  Growth& growth_;
  const Config& config_;
  std::optional<double> budget_left_;
  std::vector<int> order_;
  int searches_left_ = 100;        // for room that others have to make: each looks at everything
  bool evicted_ = false;           // somebody made way
  Reason refusal_ = Reason::kCpu;  // why the last worker found no node
  std::vector<char> no_place_;     // per contender: a worker that was granted found no node
};

std::vector<int> live_workers(const Contender& contender) {
  std::vector<int> live;
  live.reserve(contender.live);
  for (int i = 0; i < std::ssize(contender.job->workers); ++i)
    if (!contender.job->workers[i].draining) live.push_back(i);
  return live;
}

// Some of the job's workers, the one to keep longest first.
std::vector<int> in_order_of_keeping(const Contender& contender, const NodeTable& nodes, std::vector<int> some) {
  struct Key {  // in the order in which it counts; names differ
    bool cordoned = false;
    bool starting = false;
    bool unbound = false;
    bool crowded = false;
    double price = 0;
    bool spot = false;
    double created = 0;
    std::int64_t emptiness = 0;
    std::string_view name;
    int index = 0;

    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(some.size());
  for (const int i : some) {
    const Worker& worker = contender.job->workers[i];
    Key key{.starting = !worker.ready,
            .unbound = contender.worker_nodes[i] == kNowhere,
            .created = worker.created_at_seconds,
            .name = worker.name,
            .index = i};
    if (!key.unbound) {
      const NodeState& state = nodes[contender.worker_nodes[i]];
      key.crowded = state.crowded;
      key.cordoned = !state.node->schedulable;
      key.price = state.price_per_core_hour();
      key.spot = state.node->spot;
      key.emptiness = state.free_for_workers();
    }
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  std::transform(keys.begin(), keys.end(), some.begin(), [](const Key& key) { return key.index; });
  return some;
}

}  // namespace

std::vector<int> in_order_of_keeping(const Contender& contender, const NodeTable& nodes) {
  return in_order_of_keeping(contender, nodes, live_workers(contender));
}

void place(std::vector<Contender>& contenders, NodeTable& nodes, Growth& growth, std::optional<double> budget_per_hour,
           const Config& config) {
  Placer(contenders, nodes, growth, budget_per_hour, config).run();
}

std::vector<std::string> victims_of(const Contender& contender, const NodeTable& nodes) {
  if (contender.live == std::ssize(contender.kept)) return {};
  const std::vector<Worker>& workers = contender.job->workers;
  std::vector<char> is_kept(workers.size());
  for (const Worker* worker : contender.kept) is_kept[worker - workers.data()] = 1;
  std::vector<int> leaving = live_workers(contender);
  std::erase_if(leaving, [&](int worker) { return is_kept[worker] != 0; });
  leaving = in_order_of_keeping(contender, nodes, std::move(leaving));
  std::vector<std::string> names;
  names.reserve(leaving.size());
  for (auto worker = leaving.rbegin(); worker != leaving.rend(); ++worker) names.push_back(workers[*worker].name);
  return names;
}

}  // namespace sluice::scheduler
