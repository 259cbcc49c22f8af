#include "scheduler/allocate/growth.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "scheduler/allocate/lookahead.h"
#include "scheduler/allocate/tournament.h"

namespace sluice::scheduler {
namespace {

constexpr std::int64_t kMinimumTier = std::int64_t{1} << 33;
constexpr std::int64_t kGrowthTier = 0;
constexpr std::int64_t kLastTier = -kMinimumTier;
constexpr std::int64_t kLeastLocalMillicores = 100;
constexpr double kInfinitePrice = std::numeric_limits<double>::infinity();

// How many of so many workers hold a part of the pool. Those on nodes that take no new ones do not; they are kept after
// the other existing ones, and before there is a new one.
int pooled(const JobAllocation& allocation, int workers) {
  return workers - std::clamp(workers - (allocation.live - allocation.outside), 0, allocation.outside);
}

}  // namespace

Growth::Growth(std::vector<JobAllocation>& allocations, NodeTable& nodes, const ClusterSnapshot& snapshot,
               const Config& config)
    : allocations_(allocations),
      nodes_(nodes),
      config_(config),
      progress_(progress_table(config.softmin_exponent)),
      flat_supply_ratio_(supply_ratio_at_slope(config.min_slope, config.softmin_exponent)),
      budgets_(snapshot),
      host_network_(nodes),
      storage_reads_(snapshot.storages, config),
      worker_price_(nodes, config),
      local_bidders_(nodes.size()),
      local_closed_(allocations.size()),
      pool_(nodes),
      donor_closed_(allocations.size()) {
  for (const JobAllocation& allocation : allocations)
    for (const HostShare& host : allocation.hosts)
      if (host.node != kNowhere && host.most > host.granted) ++local_bidders_[host.node];
  for (const Quota& quota : snapshot.quotas)
    quota_left_.push_back(quota.worker_millicores.value_or(std::numeric_limits<std::int64_t>::max()));
  cheapest_price_ = kInfinitePrice;
  for (const NodeState& state : std::as_const(nodes).states())
    if (state.serves_workers()) cheapest_price_ = std::min(cheapest_price_, state.price_per_core_hour);
  if (cheapest_price_ == kInfinitePrice) cheapest_price_ = 0;  // nothing is for sale, and none of it is no number
  // Where all workers may use all nodes, a job that finds no CPU leaves none for an exchange either.
  if (std::popcount(nodes.usable_groups()) < 2) return;
  for (int index = 0; index < std::ssize(allocations); ++index)
    for (const HostShare& host : allocations[index].hosts)
      if (host.node != kNowhere && allocations[index].adjustable) feeders_.emplace_back(host.node, index);
  std::sort(feeders_.begin(), feeders_.end());
}

void Growth::hold_assured() {
  for (JobAllocation& allocation : allocations_) {
    if (!allocation.target.is_held()) continue;
    allocation.workers = std::min(allocation.assured_workers(), allocation.bound);
    book(allocation);
    host_network_->hold(allocation);
  }
  storage_reads_.share(allocations_);
}

void Growth::hold(const JobAllocation& other) {
  book(other);
  storage_reads_.hold(other);
}

void Growth::book(const JobAllocation& allocation) {
  pool_.take(allocation.groups, pooled(allocation, allocation.workers) * allocation.worker_millicores);
  count(allocation,
        std::max(allocation.workers, allocation.assured_workers()));  // those that are lost, too: the number stands
}

void Growth::run() {
  const auto may_grow = [](const JobAllocation& allocation) { return allocation.workers < allocation.limit; };
  active_ = std::max<int>(1, static_cast<int>(std::count_if(allocations_.begin(), allocations_.end(), may_grow)));
  std::vector<Bid> bids(allocations_.size());
  const auto ask = [&](int index) {
    const std::optional<Bid> bid = next_bid(index);
    if (!bid) return Standing{};
    bids[index] = *bid;
    return Standing{Standing::of(bid->rank), Standing::of(bid->value)};
  };
  std::vector<Standing> standings(allocations_.size());
  for (int index = 0; index < std::ssize(allocations_); ++index) standings[index] = ask(index);
  Tournament tournament(std::move(standings));
  Lookahead look_ahead(allocations_, nodes_);
  constexpr int kParts = 32;  // of the jobs; one in 32 is soon enough to ask for, and seldom in vain
  while (tournament.standing(tournament.winner()) != Standing{}) {
    const int best = tournament.winner();
    serve(bids[best]);
    tournament.set(best, ask(best));
    look_ahead(tournament.winner_of_part(best, kParts));
  }
}

std::optional<Growth::Bid> Growth::next_bid(int index) {
  const double x = allocations_[index].supply();
  const auto bid = own_bid(index, x);
  return bid || feeders_.empty() ? bid : exchange_bid(index, x);
}

std::optional<Growth::Bid> Growth::own_bid(int index, double x) {
  JobAllocation& allocation = allocations_[index];
  if (allocation.blocked && local_closed_[index]) return std::nullopt;
  const bool remote_only = allocation.target.is_held() || allocation.target.is_leftover();
  // A minimum that was refused does not keep the job from its own hosts.
  const bool below_minimum =
      !allocation.blocked && allocation.workers < std::min(allocation.least_workers, allocation.limit);
  if (remote_only || below_minimum) return remote_bid(index, x);
  if (allocation.adjustable && x >= allocation.target.supply_ratio) return std::nullopt;
  if (!local_closed_[index]) {
    if (auto bid = local_bid(index, x)) return bid;
    local_closed_[index] = 1;
  }
  return remote_bid(index, x);
}

double Growth::value_of(const JobAllocation& allocation, double x, double gain_x, double cores, bool held) const {
  const double before = progress_(x);
  double value = allocation.worth * (progress_(x + gain_x) - before) / cores;
  // Max-min in the limit. The cube of the progress is close to it, and still counts the cores that progress costs.
  if (config_.objective == Objective::kFair) value /= std::pow(std::max(before, 0.01), 3);
  return held ? value * (1 + config_.held_bonus) : value;
}

double Growth::piece_cores(const JobAllocation& allocation, double x, double slope) const {
  const double need = std::max(1 - allocation.supply_base, 0.05) / slope;
  const double step = x < config_.coarse_below ? config_.coarse_piece : config_.fine_piece;
  return step * need;
}

std::int64_t Growth::local_within(int node, std::int64_t millicores) {
  const std::int64_t spare = pool_.available(only(nodes_.bit(node)), millicores + nodes_.unit_millicores());
  return nodes_.local_within(node, millicores, spare);
}

std::int64_t Growth::pooled_millicores(const JobAllocation& allocation, int more_workers) const {
  return (pooled(allocation, allocation.workers + more_workers) - pooled(allocation, allocation.workers)) *
         allocation.worker_millicores;
}

std::optional<Growth::Bid> Growth::local_bid(int index, double x) {
  const JobAllocation& allocation = allocations_[index];
  if (allocation.supply_per_local_core <= 0) return std::nullopt;
  int best = kNowhere;  // the host that is furthest behind
  double least = kInfinitePrice;
  for (int i = 0; i < std::ssize(allocation.hosts); ++i) {
    const HostShare& host = allocation.hosts[i];
    if (host.node == kNowhere || host.granted >= host.most || nodes_[host.node].free_for_local() <= 0) continue;
    const double filled = static_cast<double>(host.granted) / std::max(host.part, 1e-9);
    if (filled < least) least = filled, best = i;
  }
  if (best == kNowhere) return std::nullopt;
  const HostShare& host = allocation.hosts[best];
  const std::int64_t held = host.held;
  const std::int64_t free = nodes_[host.node].free_for_local();
  const double reach = (allocation.target.supply_ratio - x) / allocation.supply_per_local_core;
  std::int64_t piece =
      std::llround(1000 * std::min(piece_cores(allocation, x, allocation.supply_per_local_core), reach));
  piece = std::min(piece, host.most - host.granted);
  // Beside others on the host in small steps, so that equals end up equal.
  if (const int others = local_bidders_[host.node] - 1; others > 0)
    piece = std::min(piece, std::max(free / (2 * (others + 1)), kLeastLocalMillicores));
  const bool is_held = host.granted < held;
  if (is_held) piece = std::min(piece, held - host.granted);
  // Never in tiny pieces: the rest of the node goes in one piece.
  piece = std::max(piece, std::min(kLeastLocalMillicores, host.most - host.granted));
  const std::int64_t granted = local_within(host.node, std::min(piece, free));
  if (granted <= 0) return std::nullopt;
  const double cores = static_cast<double>(granted) / 1000;
  return Bid{.rank = kGrowthTier + allocation.priority,
             .value = value_of(allocation, x, cores * allocation.supply_per_local_core, cores, is_held),
             .allocation = index,
             .host = best,
             .local = granted};
}

std::optional<Growth::Bid> Growth::remote_bid(int index, double x) {
  JobAllocation& allocation = allocations_[index];
  if (allocation.blocked) return std::nullopt;
  if (allocation.workers >= allocation.limit) {
    if (allocation.target.supply_ratio > 0) allocation.blocked = allocation.target.limit_reason;
    return std::nullopt;
  }
  Bid bid{.rank = kGrowthTier + allocation.priority, .allocation = index, .workers = 1};
  if (allocation.workers < allocation.least_workers || allocation.target.is_held()) {
    bid.rank += kMinimumTier;
    return bid;
  }
  if (allocation.target.is_leftover()) {
    bid.rank += kLastTier;
    bid.value = allocation.worth / (allocation.workers + 1);  // no curve is known: shared by weight
    return bid;
  }
  const bool is_new = allocation.workers >= allocation.held_workers;
  if (is_new && x >= flat_supply_ratio_) return std::nullopt;
  if (is_new && allocation.ends_soon) return std::nullopt;
  const double cores = allocation.worker_cores();
  // A small remaining need starts no whole worker; a held worker may stay for a smaller need than a new one.
  if (allocation.adjustable && x >= 1 &&
      allocation.target.supply_ratio - x < (is_new ? 0.5 : 0.25) * allocation.supply_per_remote_core * cores)
    return std::nullopt;
  double piece = piece_cores(allocation, x, std::max(allocation.supply_per_remote_core, 1e-12));
  if (allocation.adjustable)
    piece = std::min(piece, (allocation.target.supply_ratio - x) / allocation.supply_per_remote_core);
  const double fair = static_cast<double>(pool_.spare(allocation.groups)) / 1000 / (4.0 * active_);
  const double most = is_new ? allocation.limit : std::min(allocation.limit, allocation.held_workers);
  bid.workers = static_cast<int>(std::clamp(std::min(piece, fair) / cores, 1.0, most - allocation.workers));
  if (config_.objective == Objective::kCost) bid.workers = worker_price_.paying(allocation, x, bid.workers);
  if (bid.workers == 0) {
    allocation.blocked = Reason::kFlat;
    return std::nullopt;
  }
  bid.value =
      value_of(allocation, x, allocation.supply_per_remote_core * bid.workers * cores, bid.workers * cores, !is_new);
  return bid;
}

std::int64_t Growth::leaves_for_worker(int donor, int node) {
  const JobAllocation& allocation = allocations_[donor];
  if (donor_closed_[donor] || allocation.blocked || allocation.target.kind != TargetKind::kCompeting) return 0;
  if (allocation.workers >= allocation.limit || allocation.supply_per_local_core <= 0) return 0;
  if (allocation.ends_soon) return 0;
  const std::int64_t left = std::llround(static_cast<double>(allocation.worker_millicores) *
                                         allocation.supply_per_remote_core / allocation.supply_per_local_core);
  for (const HostShare& host : allocation.hosts)
    if (host.node == node)
      return host.granted - left >= host.floor &&
                     pool_.available(allocation.groups, allocation.worker_millicores) == allocation.worker_millicores
                 ? left
                 : 0;
  return 0;
}

std::optional<Growth::Bid> Growth::exchange_bid(int index, double x) {
  const JobAllocation& allocation = allocations_[index];
  if (!allocation.adjustable || allocation.blocked != Reason::kCpu || x >= flat_supply_ratio_) return std::nullopt;
  for (int i = 0; i < std::ssize(allocation.hosts); ++i) {
    const HostShare& host = allocation.hosts[i];
    if (host.node == kNowhere || host.granted >= host.most) continue;
    for (auto at = std::lower_bound(feeders_.begin(), feeders_.end(), std::pair(host.node, 0));
         at != feeders_.end() && at->first == host.node; ++at) {
      const int donor = at->second;
      const std::int64_t left = donor == index ? 0 : leaves_for_worker(donor, host.node);
      if (left <= 0) continue;
      const std::int64_t piece = std::min(left, host.most - host.granted);
      const double gain_x = static_cast<double>(piece) / 1000 * allocation.supply_per_local_core;
      return Bid{.rank = kGrowthTier + allocation.priority,
                 .value = value_of(allocation, x, gain_x, allocations_[donor].worker_cores(), false),
                 .allocation = index,
                 .host = i,
                 .local = piece,
                 .donor = donor};
    }
  }
  return std::nullopt;
}

bool Growth::serve(const Bid& bid) {
  JobAllocation& allocation = allocations_[bid.allocation];
  const bool served = bid.donor != kNowhere  ? serve_exchange(allocation, bid)
                      : bid.host != kNowhere ? serve_local(allocation, bid)
                                             : serve_remote(allocation, bid);
  if (served) allocation.last_value = bid.value;
  return served;
}

std::int64_t Growth::with_reads(JobAllocation& allocation, std::int64_t pieces, double supply_per_piece) {
  if (allocation.storage == kNowhere) return pieces;
  const double reach = storage_reads_.reach(allocation) - allocation.supply();
  if (reach >= static_cast<double>(pieces) * supply_per_piece) return pieces;
  const auto fed = static_cast<std::int64_t>(std::max(reach, 0.0) / std::max(supply_per_piece, 1e-12) + 1e-9);
  if (fed == 0) allocation.blocked = Reason::kStorage;
  return fed;
}

bool Growth::serve_local(JobAllocation& allocation, const Bid& bid) {
  HostShare& host = allocation.hosts[bid.host];
  const std::int64_t room = std::max<std::int64_t>(0, nodes_[host.node].free_for_local());
  const std::int64_t found = local_within(host.node, std::min(bid.local, room));
  if (found <= 0) return false;
  const std::int64_t granted = with_reads(allocation, found, allocation.supply_per_local_core / 1000);
  if (granted == 0) {
    local_closed_[&allocation - allocations_.data()] = 1;
    return false;
  }
  nodes_.give_local(host.node, granted);
  host.granted += granted;
  allocation.local_millicores += granted;
  storage_reads_.update(allocation);
  return true;
}

bool Growth::serve_remote(JobAllocation& allocation, const Bid& bid) {
  const std::int64_t size = allocation.worker_millicores;
  int workers = static_cast<int>(
      with_reads(allocation, bid.workers, allocation.supply_per_remote_core * allocation.worker_cores()));
  if (workers == 0) return false;
  const auto bounded = [&](std::int64_t available, Reason reason) {
    if (available < workers) {
      workers = static_cast<int>(std::max<std::int64_t>(available, 0));
      if (workers == 0 && !allocation.blocked) allocation.blocked = reason;
    }
  };
  const std::int64_t available = pool_.available(allocation.groups, pooled_millicores(allocation, workers));
  int fitting = workers;
  while (fitting > 0 && pooled_millicores(allocation, fitting) > available) --fitting;
  bounded(fitting, Reason::kCpu);
  if (allocation.workers >= allocation.assured_workers()) {
    if (allocation.quota != kNowhere) bounded(quota_left_[allocation.quota] / size, Reason::kQuota);
    const int carried = host_network_ ? host_network_->take(allocation, workers) : workers;
    bounded(carried, Reason::kNetwork);
    bounded(within_budget(allocation, workers), Reason::kBudget);
    if (host_network_) host_network_->give_back(allocation, carried - workers);
    count(allocation, workers);
  }
  if (workers == 0) return false;
  pool_.take(allocation.groups, pooled_millicores(allocation, workers));
  allocation.workers += workers;
  storage_reads_.update(allocation);
  return true;
}

bool Growth::serve_exchange(JobAllocation& allocation, const Bid& bid) {
  JobAllocation& donor = allocations_[bid.donor];
  const int node = allocation.hosts[bid.host].node;
  const std::int64_t left = leaves_for_worker(bid.donor, node);
  const auto was_blocked = donor.blocked;
  if (left <= 0 || !serve_remote(donor, Bid{.workers = 1})) {
    donor.blocked = was_blocked;
    donor_closed_[bid.donor] = 1;
    return false;
  }
  for (HostShare& host : donor.hosts)
    if (host.node == node) host.granted -= left;
  donor.local_millicores -= left;
  storage_reads_.update(donor);
  nodes_.give_local(node, -left);
  const bool served = serve_local(allocation, bid);
  if (allocation.supply() >= allocation.target.supply_ratio) allocation.blocked.reset();
  return served;
}

void Growth::give_back_worker(JobAllocation& allocation) {
  pool_.give_back(allocation.groups, -pooled_millicores(allocation, -1));
  if (allocation.workers > allocation.assured_workers()) {
    count(allocation, -1);
    if (host_network_) host_network_->give_back(allocation, 1);
  }
  --allocation.workers;
  storage_reads_.update(allocation);
}

void Growth::count(const JobAllocation& allocation, int workers) {
  if (allocation.quota != kNowhere) quota_left_[allocation.quota] -= workers * allocation.worker_millicores;
  budgets_.spend(allocation, workers * allocation.worker_cores() * cheapest_price_);
}

int Growth::within_budget(const JobAllocation& allocation, int workers) const {
  const double price = allocation.worker_cores() * cheapest_price_;
  if (price <= 0) return workers;
  return static_cast<int>(std::clamp(budgets_.left_for(allocation) / price + 1e-9, 0.0, static_cast<double>(workers)));
}

}  // namespace sluice::scheduler
