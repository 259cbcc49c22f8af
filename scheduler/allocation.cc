#include "scheduler/allocation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <queue>
#include <tuple>

#include "scheduler/progress.h"

namespace sluice::scheduler {
namespace {

enum Tier { kGrowth, kMinimum, kUnconditional };

struct Bid {
  Tier tier = kGrowth;
  int priority = 0;
  double value = 0;
  int claim = 0;

  // The lower claim index wins a tie.
  friend bool operator<(const Bid& a, const Bid& b) {
    return std::tie(a.tier, a.priority, a.value, b.claim) < std::tie(b.tier, b.priority, b.value, a.claim);
  }
};

// A claim while it is being served.
struct Holding {
  const Claim* claim = nullptr;
  int bound = 0;                          // existing workers that stand on a node
  int limit = 0;                          // workers it may still reach in this decision
  std::vector<const Worker*> candidates;  // existing workers not yet granted, the one to keep longest last
  std::vector<const Worker*> kept;
  Grant grant;

  // An existing worker, already taken off `candidates`, cannot stay. Nor is it replaced, nor a lost one, in this
  // decision: a number of replicas says how many workers there are, and cannot say "this one, but elsewhere".
  void give_one_up() { limit = grant.workers + static_cast<int>(candidates.size()); }

  bool on_node(const Worker& worker, const Room& room) const { return !worker.node.empty() && room.knows(worker.node); }
};

double value_of_worker(const Claim& claim, int already, const Config& config) {
  const Job& job = *claim.job;
  const double cores = static_cast<double>(job.worker_millicores) / 1000;
  const double before = progress(claim.belief->supply_ratio(already * cores, job, config), config.softmin_exponent);
  const double after =
      progress(claim.belief->supply_ratio((already + 1) * cores, job, config), config.softmin_exponent);
  const double gang = std::max({job.gpus, job.ranks, 1});
  double value = job.weight * std::sqrt(gang) * (after - before) / cores;
  if (job.remaining_seconds)
    value /= std::sqrt(std::max(*job.remaining_seconds, config.shortest_remaining_seconds) / 3600);
  return already < job.allocated_workers ? value * (1 + config.held_bonus) : value;
}

// The bid for the worker after the first `already`.
Bid bid_for(const Holding& holding, int index, int already, const Config& config) {
  const Claim& claim = *holding.claim;
  const Tier tier = already < claim.job->min_workers ? kMinimum : kGrowth;
  // Only where a worker stands is beyond competition; one that was lost is replaced after the minima of the same
  // priority. Its value is not asked for: nothing may be known about the job.
  if (claim.unconditional) return {already < holding.bound ? kUnconditional : kMinimum, claim.job->priority, 0, index};
  return {tier, claim.job->priority, value_of_worker(claim, already, config), index};
}

// The next bid of a claim; none when it has what it wants or when more would bring next to nothing.
std::optional<Bid> next_bid(const Holding& holding, int index, const Config& config) {
  const Claim& claim = *holding.claim;
  const int already = holding.grant.workers;
  if (already >= holding.limit) return std::nullopt;
  const Bid bid = bid_for(holding, index, already, config);
  const bool is_new = already >= claim.job->allocated_workers;
  if (bid.tier == kGrowth && is_new) {
    const double x = claim.belief->supply_ratio(already * static_cast<double>(claim.job->worker_millicores) / 1000,
                                                *claim.job, config);
    if (progress_slope(x, config.softmin_exponent) < config.min_slope) return std::nullopt;
  }
  return bid;
}

// Takes the least valuable existing worker off its node, if that makes room for a new worker of the bid being served.
// Every worker that is still open to this has a lower bid than that one: bids are served from the highest. Whichever
// pod of a job goes, what the job loses is its last worker: that one's bid counts.
bool displace_least(std::vector<Holding>& holdings, const Bid& bid, std::int64_t millicores, Room& room,
                    const Config& config) {
  std::optional<Bid> least;
  std::size_t least_candidate = 0;
  for (int index = 0; index < std::ssize(holdings); ++index) {
    const Holding& other = holdings[index];
    if (index == bid.claim || other.candidates.empty()) continue;
    const int last = other.grant.workers + static_cast<int>(other.candidates.size()) - 1;
    const Bid its_bid = bid_for(other, index, last, config);
    if (least && !(its_bid < *least)) continue;
    const auto helps = [&](const Worker* worker) {
      return other.on_node(*worker, room) &&
             room.would_fit_without(worker->node, other.claim->job->worker_millicores, millicores);
    };
    const auto candidate = std::find_if(other.candidates.begin(), other.candidates.end(), helps);
    if (candidate == other.candidates.end()) continue;
    least = its_bid;
    least_candidate = static_cast<std::size_t>(candidate - other.candidates.begin());
  }
  if (!least) return false;
  Holding& loser = holdings[least->claim];
  const auto candidate = loser.candidates.begin() + static_cast<std::ptrdiff_t>(least_candidate);
  room.forget((*candidate)->node, loser.claim->job->worker_millicores);
  loser.candidates.erase(candidate);
  loser.give_one_up();
  return true;
}

std::optional<std::string> place_new(std::vector<Holding>& holdings, const Bid& bid, Room& room, const Config& config) {
  const std::int64_t millicores = holdings[bid.claim].claim->job->worker_millicores;
  if (auto node = room.place_in_spare(millicores)) return node;
  if (displace_least(holdings, bid, millicores, room, config)) return room.place_in_spare(millicores);
  return room.place_over_expected(millicores);  // a large worker over several small ones
}

// Room for one more worker of the bidder, and on which node: its best existing worker, or else a new one.
std::optional<std::string> find_room(std::vector<Holding>& holdings, const Bid& bid, Room& room, const Config& config) {
  Holding& mine = holdings[bid.claim];
  const std::int64_t millicores = mine.claim->job->worker_millicores;
  while (!mine.candidates.empty()) {
    const Worker& best = *mine.candidates.back();
    mine.candidates.pop_back();
    std::optional<std::string> node;
    if (!mine.on_node(best, room)) {
      node = place_new(holdings, bid, room, config);
    } else if (room.keep(best.node, millicores)) {
      node = best.node;
    } else {
      room.forget(best.node, millicores);
    }
    if (node) {
      mine.kept.push_back(&best);
      return node;
    }
    mine.give_one_up();
  }
  if (mine.grant.workers >= mine.limit) return std::nullopt;
  std::optional<std::string> node = place_new(holdings, bid, room, config);
  if (node) mine.grant.new_worker_nodes.push_back(*node);
  return node;
}

// The live workers beyond those kept. Workers of an unconditional claim are not given up for want of room: the cluster
// may be hiding it from us just as it hides the metrics.
std::vector<std::string> surplus(const Holding& holding) {
  std::vector<const Worker*> live = in_order_of_keeping(*holding.claim->job);
  if (holding.claim->unconditional) {
    live.erase(live.begin(), live.begin() + std::min<std::ptrdiff_t>(holding.claim->wanted, std::ssize(live)));
  } else {
    std::erase_if(live, [&](const Worker* worker) {
      return std::find(holding.kept.begin(), holding.kept.end(), worker) != holding.kept.end();
    });
  }
  std::vector<std::string> names;
  names.reserve(live.size());
  for (auto worker = live.rbegin(); worker != live.rend(); ++worker) names.push_back((*worker)->name);
  return names;
}

Holding open(const Claim& claim, Room& room) {
  Holding holding{.claim = &claim, .limit = claim.wanted, .candidates = in_order_of_keeping(*claim.job)};
  if (std::ssize(holding.candidates) > claim.wanted) holding.candidates.resize(claim.wanted);
  std::reverse(holding.candidates.begin(), holding.candidates.end());
  for (const Worker* worker : holding.candidates) {
    if (!holding.on_node(*worker, room)) continue;
    room.expect(worker->node, claim.job->worker_millicores);
    ++holding.bound;
  }
  return holding;
}

}  // namespace

std::vector<const Worker*> in_order_of_keeping(const Job& job) {
  std::vector<const Worker*> live;
  for (const Worker& worker : job.workers) {
    if (!worker.draining) live.push_back(&worker);
  }
  std::sort(live.begin(), live.end(), [](const Worker* a, const Worker* b) {
    const auto key = [](const Worker& w) { return std::make_tuple(!w.ready, w.node.empty(), w.created_at_seconds); };
    return std::tuple_cat(key(*a), std::tie(a->name)) < std::tuple_cat(key(*b), std::tie(b->name));
  });
  return live;
}

std::vector<Grant> allocate(const std::vector<Claim>& claims, Room& room, const Config& config) {
  std::vector<Holding> holdings;
  holdings.reserve(claims.size());
  std::priority_queue<Bid> bids;
  for (const Claim& claim : claims) holdings.push_back(open(claim, room));
  for (int index = 0; index < std::ssize(holdings); ++index) {
    if (const auto bid = next_bid(holdings[index], index, config)) bids.push(*bid);
  }

  while (!bids.empty()) {
    const Bid bid = bids.top();
    bids.pop();
    Holding& holding = holdings[bid.claim];
    if (holding.grant.workers < holding.limit) {  // else: displaced since it bid
      if (auto node = find_room(holdings, bid, room, config)) {
        ++holding.grant.workers;
        holding.grant.occupied_nodes.push_back(*std::move(node));
        if (const auto next = next_bid(holding, bid.claim, config)) bids.push(*next);
        continue;
      }
    }
    holding.grant.out_of_room = true;
  }

  std::vector<Grant> grants;
  grants.reserve(holdings.size());
  for (Holding& holding : holdings) {
    holding.grant.victims = surplus(holding);
    holding.grant.out_of_room |= holding.limit < holding.claim->wanted;
    grants.push_back(std::move(holding.grant));
  }
  return grants;
}

}  // namespace sluice::scheduler
