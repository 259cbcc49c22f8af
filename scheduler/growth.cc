#include "scheduler/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::scheduler {
namespace {

constexpr std::int64_t kMinimumTier = std::int64_t{1} << 33;
constexpr std::int64_t kGrowthTier = 0;
constexpr std::int64_t kLastTier = -kMinimumTier;
constexpr std::int64_t kLeastLocalMillicores = 100;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// How many of so many workers hold a part of the pool. Those on nodes that take no new ones do not; they are kept after
// the other existing ones, and before there is a new one.
int pooled(const Contender& c, int workers) {
  return workers - std::clamp(workers - (c.live - c.outside), 0, c.outside);
}

// Puts the top of a heap where it belongs: a bidder's next bid replaces its last one. To take that out and put this in
// costs twice as much, and most of them stay near the top.
void sink_top(std::vector<Growth::Bid>& heap) {
  const Growth::Bid bid = heap.front();
  std::size_t at = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
    if (child + 1 < heap.size() && heap[child] < heap[child + 1]) ++child;
    if (!(bid < heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = bid;
}

}  // namespace

Growth::Growth(std::vector<Contender>& contenders, NodeTable& nodes, const ClusterSnapshot& snapshot,
               const Config& config)
    : contenders_(contenders),
      nodes_(nodes),
      config_(config),
      progress_(progress_table(config.softmin_exponent)),
      flat_supply_ratio_(supply_ratio_at_slope(config.min_slope, config.softmin_exponent)),
      budget_left_(snapshot.budget_per_hour),
      local_bidders_(nodes.size()),
      local_closed_(contenders.size()) {
  for (const Contender& c : contenders)
    for (const HostShare& host : c.hosts)
      if (host.node != kNowhere && host.most > host.granted) ++local_bidders_[host.node];
  for (const Quota& quota : snapshot.quotas)
    quota_left_.push_back(quota.worker_millicores.value_or(std::numeric_limits<std::int64_t>::max()));
  host_network_.reserve(nodes.size());
  cheapest_price_ = kUnlimited;
  for (int node = 0; node < nodes.size(); ++node) {
    const NodeState& state = nodes[node];
    host_network_.push_back(state.node->network_bytes_per_second.value_or(kUnlimited));
    const bool takes_new = state.node->schedulable && state.free_for_workers() > 0;
    if (takes_new || state.standing_millicores > 0)
      cheapest_price_ = std::min(cheapest_price_, state.price_per_core_hour());
  }
  if (cheapest_price_ == kUnlimited) cheapest_price_ = 0;  // nothing is for sale, and none of it is no number
}

void Growth::hold_unconditional() {
  for (Contender& c : contenders_) {
    if (!c.want.unconditional) continue;
    c.workers = std::min(c.assured_workers(), c.bound);
    hold(c);
  }
}

void Growth::hold(const Contender& c) {
  used_millicores_ += pooled(c, c.workers) * c.worker_millicores;
  count(c, std::max(c.workers, c.assured_workers()));  // those that are lost, too: the number stands
}

void Growth::run(const std::vector<int>& bidders) {
  const auto may_grow = [&](int index) { return contenders_[index].workers < contenders_[index].limit; };
  active_ = std::max<int>(1, static_cast<int>(std::count_if(bidders.begin(), bidders.end(), may_grow)));
  std::vector<Bid> bids;  // a heap, the highest on top
  bids.reserve(bidders.size());
  for (const int index : bidders)
    if (const auto bid = next_bid(index)) bids.push_back(*bid);
  std::make_heap(bids.begin(), bids.end());
  while (!bids.empty()) {
    serve(bids.front());
    if (const auto bid = next_bid(bids.front().contender)) {
      bids.front() = *bid;
      sink_top(bids);
    } else {
      std::pop_heap(bids.begin(), bids.end());
      bids.pop_back();
    }
  }
}

std::optional<Growth::Bid> Growth::next_bid(int index) {
  Contender& c = contenders_[index];
  if (c.blocked && local_closed_[index]) return std::nullopt;
  const double x = c.supply();
  const bool remote_only = c.want.unconditional || c.want.last_in_line;
  // A minimum that was refused does not keep the job from its own hosts.
  const bool below_minimum = !c.blocked && c.workers < std::min(c.least_workers, c.limit);
  if (remote_only || below_minimum) return remote_bid(index, x);
  if (c.adjustable && x >= c.want.supply_ratio) return std::nullopt;
  if (!local_closed_[index]) {
    if (auto bid = local_bid(index, x)) return bid;
    local_closed_[index] = 1;
  }
  return remote_bid(index, x);
}

double Growth::value_of(const Contender& c, double x, double gain_x, double cores, bool held) const {
  const double before = progress_(x);
  double value = c.worth * (progress_(x + gain_x) - before) / cores;
  // Max-min in the limit; the cube of the progress is close to it, and still minds what a core costs each job.
  if (config_.objective == Objective::kFair) value /= std::pow(std::max(before, 0.01), 3);
  return held ? value * (1 + config_.held_bonus) : value;
}

double Growth::piece_cores(const Contender& c, double x, double slope) const {
  const double need = std::max(1 - c.supply_base, 0.05) / slope;
  const double step = x < config_.coarse_below ? config_.coarse_piece : config_.fine_piece;
  return step * need;
}

std::optional<Growth::Bid> Growth::local_bid(int index, double x) const {
  const Contender& c = contenders_[index];
  if (c.supply_per_local_core <= 0) return std::nullopt;
  int best = kNowhere;  // the host that is furthest behind
  double least = kUnlimited;
  for (int i = 0; i < std::ssize(c.hosts); ++i) {
    const HostShare& host = c.hosts[i];
    if (host.node == kNowhere || host.granted >= host.most || nodes_[host.node].free_for_local() <= 0) continue;
    const double filled = static_cast<double>(host.granted) / std::max(host.part, 1e-9);
    if (filled < least) least = filled, best = i;
  }
  if (best == kNowhere) return std::nullopt;
  const HostShare& host = c.hosts[best];
  const std::int64_t held = host.held;
  const std::int64_t free = nodes_[host.node].free_for_local();
  const double reach = (c.want.supply_ratio - x) / c.supply_per_local_core;
  std::int64_t piece = std::llround(1000 * std::min(piece_cores(c, x, c.supply_per_local_core), reach));
  piece = std::min(piece, host.most - host.granted);
  // Beside others on the host in small steps, so that equals end up equal.
  if (const int others = local_bidders_[host.node] - 1; others > 0)
    piece = std::min(piece, std::max(free / (2 * (others + 1)), kLeastLocalMillicores));
  const bool is_held = host.granted < held;
  if (is_held) piece = std::min(piece, held - host.granted);
  // Never in crumbs, and what is left of the node in one go.
  piece = std::max(piece, std::min(kLeastLocalMillicores, host.most - host.granted));
  const std::int64_t granted = nodes_.local_within(host.node, std::min(piece, free), spare_millicores());
  if (granted <= 0) return std::nullopt;
  const double cores = static_cast<double>(granted) / 1000;
  return Bid{.rank = kGrowthTier + c.priority,
             .value = value_of(c, x, cores * c.supply_per_local_core, cores, is_held),
             .contender = index,
             .host = best,
             .local = granted};
}

std::optional<Growth::Bid> Growth::remote_bid(int index, double x) {
  Contender& c = contenders_[index];
  if (c.blocked) return std::nullopt;
  if (c.workers >= c.limit) {
    if (c.want.supply_ratio > 0) c.blocked = c.want.limit_reason;
    return std::nullopt;
  }
  Bid bid{.rank = kGrowthTier + c.priority, .contender = index, .workers = 1};
  if (c.workers < c.least_workers || c.want.unconditional) {
    bid.rank += kMinimumTier;
    return bid;
  }
  if (c.want.last_in_line) {
    bid.rank += kLastTier;
    bid.value = c.worth / (c.workers + 1);  // no curve is known: shared by weight
    return bid;
  }
  const bool is_new = c.workers >= c.held_workers;
  if (is_new && x >= flat_supply_ratio_) return std::nullopt;
  if (is_new && c.job->remaining_seconds && *c.job->remaining_seconds < config_.worker_pays_after_seconds)
    return std::nullopt;
  const double cores = c.worker_cores();
  // Not a whole worker for a crumb of need; what is held may stay for less than what is new.
  if (c.adjustable && x >= 1 && c.want.supply_ratio - x < (is_new ? 0.5 : 0.25) * c.supply_per_remote_core * cores)
    return std::nullopt;
  double piece = piece_cores(c, x, std::max(c.supply_per_remote_core, 1e-12));
  if (c.adjustable) piece = std::min(piece, (c.want.supply_ratio - x) / c.supply_per_remote_core);
  const double fair = static_cast<double>(spare_millicores()) / 1000 / (4.0 * active_);
  const double most = is_new ? c.limit : std::min(c.limit, c.held_workers);
  bid.workers = static_cast<int>(std::clamp(std::min(piece, fair) / cores, 1.0, most - c.workers));
  bid.value = value_of(c, x, c.supply_per_remote_core * bid.workers * cores, bid.workers * cores, !is_new);
  if (config_.objective == Objective::kCost && is_new) {
    const double gain = std::max(c.job->gpus, 1) * c.supply_per_remote_core *
                        progress_slope(x, config_.softmin_exponent);  // GPU-hours saved per core-hour
    if (gain * config_.core_hours_per_gpu_hour < 1) {
      c.blocked = Reason::kFlat;
      return std::nullopt;
    }
  }
  return bid;
}

bool Growth::serve(const Bid& bid) {
  Contender& c = contenders_[bid.contender];
  const bool served = bid.host != kNowhere ? serve_local(c, bid) : serve_remote(c, bid);
  if (served) c.last_value = bid.value;
  return served;
}

bool Growth::serve_local(Contender& c, const Bid& bid) {
  HostShare& host = c.hosts[bid.host];
  const std::int64_t room = std::max<std::int64_t>(0, nodes_[host.node].free_for_local());
  const std::int64_t granted = nodes_.local_within(host.node, std::min(bid.local, room), spare_millicores());
  if (granted <= 0) return false;
  nodes_.give_local(host.node, granted);
  host.granted += granted;
  c.local_millicores += granted;
  return true;
}

bool Growth::serve_remote(Contender& c, const Bid& bid) {
  const std::int64_t size = c.worker_millicores;
  int workers = bid.workers;
  const auto bounded = [&](std::int64_t available, Reason reason) {
    if (available < workers) {
      workers = static_cast<int>(std::max<std::int64_t>(available, 0));
      if (workers == 0 && !c.blocked) c.blocked = reason;
    }
  };
  int fitting = workers;
  while (fitting > 0 && (pooled(c, c.workers + fitting) - pooled(c, c.workers)) * size > spare_millicores()) --fitting;
  bounded(fitting, Reason::kCpu);
  if (c.workers >= c.assured_workers()) {
    if (c.quota != kNowhere) bounded(quota_left_[c.quota] / size, Reason::kQuota);
    bounded(within_network(c, workers), Reason::kNetwork);
    bounded(within_budget(c, workers), Reason::kBudget);
    count(c, workers);
  }
  if (workers == 0) return false;
  used_millicores_ += (pooled(c, c.workers + workers) - pooled(c, c.workers)) * size;
  c.workers += workers;
  return true;
}

void Growth::give_back_worker(Contender& c) {
  used_millicores_ -= (pooled(c, c.workers) - pooled(c, c.workers - 1)) * c.worker_millicores;
  if (c.workers > c.assured_workers()) count(c, -1);
  --c.workers;
}

void Growth::count(const Contender& c, int workers) {
  if (c.quota != kNowhere) quota_left_[c.quota] -= workers * c.worker_millicores;
  if (budget_left_) *budget_left_ -= workers * c.worker_cores() * cheapest_price_;
  take_network(c, workers);
}

int Growth::within_budget(const Contender& c, int workers) const {
  const double price = c.worker_cores() * cheapest_price_;
  if (!budget_left_ || price <= 0) return workers;
  return static_cast<int>(std::clamp(*budget_left_ / price + 1e-9, 0.0, static_cast<double>(workers)));
}

int Growth::within_network(const Contender& c, int workers) const {
  const double traffic = c.worker_traffic;
  if (traffic <= 0) return workers;
  double fits = workers;
  for (const HostShare& host : c.hosts)
    if (host.node != kNowhere && host.part > 0) fits = std::min(fits, host_network_[host.node] / (traffic * host.part));
  return static_cast<int>(std::max(fits + 1e-9, 0.0));
}

void Growth::take_network(const Contender& c, int workers) {
  const double traffic = workers * c.worker_traffic;
  if (traffic == 0) return;
  for (const HostShare& host : c.hosts)
    if (host.node != kNowhere) host_network_[host.node] -= traffic * host.part;
}

}  // namespace sluice::scheduler
