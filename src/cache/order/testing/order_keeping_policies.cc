#include <list>
#include <set>
#include <unordered_map>
#include <utility>

#include "src/cache/order/testing/simulated_policy.h"

namespace sluice::cache::testing {
namespace {

// The front of a list goes first. `moves_up`: one that is used goes to the back. `evicts`: or what is full stays so.
class Queue final : public SimulatedPolicy {
 public:
  Queue(std::string_view name, const SharedWorkload& workload, std::uint64_t capacity_bytes, bool moves_up, bool evicts)
      : name_(name), workload_(workload), capacity_bytes_(capacity_bytes), moves_up_(moves_up), evicts_(evicts) {}

  std::string_view name() const override { return name_; }

  Served serve(const SharedUse& use) override {
    if (const auto found = places_.find(use.sample); found != places_.end()) {
      if (moves_up_) queue_.splice(queue_.end(), queue_, found->second);
      return {use.sample, 0};
    }
    const std::uint64_t bytes = workload_.bytes[use.sample];
    if (bytes > capacity_bytes_) return {use.sample, 1};
    while (evicts_ && bytes_ + bytes > capacity_bytes_) {
      bytes_ -= workload_.bytes[queue_.front()];
      places_.erase(queue_.front());
      queue_.pop_front();
    }
    if (bytes_ + bytes > capacity_bytes_) return {use.sample, 1};
    bytes_ += bytes;
    places_[use.sample] = queue_.insert(queue_.end(), use.sample);
    return {use.sample, 1};
  }

 private:
  const std::string_view name_;
  const SharedWorkload& workload_;
  const std::uint64_t capacity_bytes_;
  const bool moves_up_;
  const bool evicts_;
  std::list<std::uint32_t> queue_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

// Belady (1966), with the right not to keep what was fetched.
class Belady final : public SimulatedPolicy {
 public:
  Belady(const SharedWorkload& workload, std::uint64_t capacity)
      : capacity_(capacity), next_(workload.uses.size()), cached_(workload.samples, kNot) {
    std::vector<std::uint64_t> later(workload.samples, workload.uses.size());
    for (std::size_t i = workload.uses.size(); i-- > 0;) next_[i] = std::exchange(later[workload.uses[i].sample], i);
  }

  std::string_view name() const override { return "Belady"; }

  Served serve(const SharedUse& use) override {
    const std::uint64_t next = next_[uses_++];
    std::uint64_t& cached = cached_[use.sample];
    const bool is_hit = cached != kNot;
    if (is_hit) by_next_use_.erase({cached, use.sample});
    cached = kNot;
    if (by_next_use_.size() == capacity_) {
      if (capacity_ == 0 || by_next_use_.rbegin()->first <= next) return {use.sample, 1};
      const auto farthest = std::prev(by_next_use_.end());
      cached_[farthest->second] = kNot;
      by_next_use_.erase(farthest);
    }
    cached = next;
    by_next_use_.emplace(next, use.sample);
    return {use.sample, is_hit ? 0U : 1U};
  }

 private:
  static constexpr std::uint64_t kNot = UINT64_MAX;
  const std::uint64_t capacity_;
  std::size_t uses_ = 0;
  std::vector<std::uint64_t> next_;    // of each use: that of the next one of its sample
  std::vector<std::uint64_t> cached_;  // of each sample: its next use, if it is cached
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_next_use_;
};

}  // namespace

std::unique_ptr<SimulatedPolicy> least_recently_used(const SharedWorkload& workload, std::uint64_t capacity_bytes) {
  return std::make_unique<Queue>("LRU", workload, capacity_bytes, true, true);
}

std::unique_ptr<SimulatedPolicy> first_in_first_out(const SharedWorkload& workload, std::uint64_t capacity_bytes) {
  return std::make_unique<Queue>("FIFO", workload, capacity_bytes, false, true);
}

std::unique_ptr<SimulatedPolicy> never_evict(const SharedWorkload& workload, std::uint64_t capacity_bytes) {
  return std::make_unique<Queue>("never evict", workload, capacity_bytes, false, false);
}

std::unique_ptr<SimulatedPolicy> belady(const SharedWorkload& workload, std::uint64_t capacity) {
  return std::make_unique<Belady>(workload, capacity);
}

FetchAccount account_of(SimulatedPolicy& policy, const SharedWorkload& workload) {
  FetchAccount account;
  for (std::size_t i = 0; i < workload.uses.size(); ++i) {
    const SharedUse& use = workload.uses[i];
    const Served served = policy.serve(use);
    if (served.sample != use.sample) account.keeps_orders = false;
    if (i < workload.counted_from || i >= workload.counted_to) continue;
    ++account.uses;
    account.fetches += served.fetches;
    account.bytes += workload.bytes[served.sample];
    if (served.fetches > 0) account.fetched_bytes += workload.bytes[served.sample];
  }
  return account;
}

}  // namespace sluice::cache::testing
