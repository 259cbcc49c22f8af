#include "src/cache/order/shared_orders.h"

#include <algorithm>
#include <limits>

namespace sluice::cache {
namespace {

// Long enough for some batches of each of some jobs, and short enough to notice within seconds that one has paused.
constexpr double kWindowUses = 4096;
constexpr std::uint64_t kFadeEveryUses = 64;
// Of an equal share of all uses.
constexpr double kPausedShare = 1.0 / 64;

}  // namespace

Result<void> SharedOrders::join(Job job, std::uint32_t length, std::span<const std::uint32_t> members) {
  leave(job);
  for (const std::uint32_t member : members)
    if (member >= limits_.samples) return invalid_argument("sample " + std::to_string(member) + " is none");
  if (sharers_.size() >= limits_.jobs)
    std::erase_if(sharers_, [](const auto& sharer) { return sharer.second.is_paused; });
  const std::uint64_t bytes = std::uint64_t{limits_.samples} * sizeof(std::uint32_t);
  if (sharers_.size() >= limits_.jobs || memory_bytes() + bytes > limits_.bytes)
    return Error(ErrorCode::kResourceExhausted, "a cache follows the orders of " + std::to_string(limits_.jobs) +
                                                    " jobs, in " + std::to_string(limits_.bytes) + " bytes");
  double recent = 0;
  for (const auto& [other, sharer] : sharers_) recent += sharer.recent_uses;
  // Until it is measured: as fast as the others are on average.
  recent = sharers_.empty() ? kWindowUses : std::max(1.0, recent / static_cast<double>(sharers_.size()));
  sharers_.emplace(job, Sharer{JobOrder(limits_.samples, length, members), recent});
  ++revision_;
  return {};
}

void SharedOrders::leave(Job job) {
  if (sharers_.erase(job) > 0) ++revision_;
}

Result<SharedOrders::Sharer*> SharedOrders::sharer_with_room(Job job, std::size_t uses) {
  const auto found = sharers_.find(job);
  if (found == sharers_.end()) return not_found("job " + std::to_string(job) + " has not joined");
  const std::uint64_t bytes = (std::uint64_t{limits_.samples} + uses) * sizeof(std::uint32_t);
  if (memory_bytes() + bytes > limits_.bytes)
    return Error(ErrorCode::kResourceExhausted, "no room for an order of " + std::to_string(uses) + " uses");
  return &found->second;
}

Result<void> SharedOrders::begin_epoch(Job job, std::span<const std::uint32_t> uses, std::uint32_t position) {
  SLUICE_TRY(Sharer * sharer, sharer_with_room(job, uses.size()));
  ++revision_;
  return sharer->order.begin_epoch(uses, position);
}

Result<void> SharedOrders::announce_next_epoch(Job job, std::span<const std::uint32_t> uses) {
  SLUICE_TRY(Sharer * sharer, sharer_with_room(job, uses.size()));
  ++revision_;
  return sharer->order.announce_next_epoch(uses);
}

void SharedOrders::use(Job job, std::uint32_t sample) {
  if (++uses_ % kFadeEveryUses == 0) let_rates_fade();
  const auto found = sharers_.find(job);
  if (found == sharers_.end() || sample >= limits_.samples) return;
  Sharer& sharer = found->second;
  const std::uint64_t epochs = sharer.order.epochs();
  sharer.order.use(sample);
  sharer.recent_uses += 1;
  sharer.is_paused = sharer.is_paused && has_paused(sharer);
  if (sharer.order.epochs() != epochs && sharer.order.is_announced()) ++revision_;
}

void SharedOrders::let_rates_fade() {
  for (auto& [job, sharer] : sharers_) {
    sharer.recent_uses *= 1 - kFadeEveryUses / kWindowUses;
    if (sharer.is_paused || !has_paused(sharer)) continue;
    sharer.is_paused = true;
    ++revision_;
  }
}

bool SharedOrders::has_paused(const Sharer& sharer) const {
  return sharer.recent_uses * static_cast<double>(sharers_.size()) < kPausedShare * kWindowUses;
}

bool SharedOrders::is_known(std::uint32_t sample) const {
  return std::any_of(sharers_.begin(), sharers_.end(),
                     [&](const auto& sharer) { return !sharer.second.is_paused && sharer.second.order.knows(sample); });
}

void SharedOrders::for_each_knowing(std::uint32_t sample, const std::function<void(Job)>& found) const {
  for (const auto& [job, sharer] : sharers_)
    if (sharer.order.knows(sample)) found(job);
}

double SharedOrders::next_use(std::uint32_t sample) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (sample >= limits_.samples) return kNever;
  int interested = 0;
  double recent_uses = 0;
  for (const auto& [job, sharer] : sharers_) {
    if (sharer.is_paused) continue;
    recent_uses += sharer.recent_uses;
    if (sharer.order.knows(sample)) ++interested;
  }
  double least = kNever;
  for (const auto& [job, sharer] : sharers_) {
    if (sharer.is_paused) continue;
    const double rate = sharer.recent_uses / recent_uses;
    least = std::min(least, sharer.order.distance_to(sample, interested > 1) / rate);
  }
  return static_cast<double>(uses_) + least;
}

std::uint64_t SharedOrders::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [job, sharer] : sharers_) bytes += sharer.order.memory_bytes();
  return bytes;
}

}  // namespace sluice::cache
