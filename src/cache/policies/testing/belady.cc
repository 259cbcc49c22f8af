#include <set>
#include <utility>

#include "src/cache/policies/testing/fetch_account.h"

namespace sluice::cache::testing {
namespace {

// Belady (1966), with the right not to keep what was fetched.
class Belady final : public CachePolicy {
 public:
  Belady(const SharedWorkload& workload, std::uint64_t capacity)
      : capacity_(capacity), next_(workload.uses.size()), cached_(workload.samples, kNot) {
    std::vector<std::uint64_t> later(workload.samples, workload.uses.size());
    for (std::size_t i = workload.uses.size(); i-- > 0;) next_[i] = std::exchange(later[workload.uses[i].sample], i);
  }

  std::string_view name() const override { return "Belady"; }

  Served serve(std::uint32_t /*job*/, std::uint32_t sample) override {
    const std::uint64_t next = next_[uses_++];
    std::uint64_t& cached = cached_[sample];
    const bool is_hit = cached != kNot;
    if (is_hit) by_next_use_.erase({cached, sample});
    cached = kNot;
    if (by_next_use_.size() == capacity_) {
      if (capacity_ == 0 || by_next_use_.rbegin()->first <= next) return {sample, 1};
      const auto farthest = std::prev(by_next_use_.end());
      cached_[farthest->second] = kNot;
      by_next_use_.erase(farthest);
    }
    cached = next;
    by_next_use_.emplace(next, sample);
    return {sample, is_hit ? 0U : 1U};
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

MadeCachePolicy belady(const SharedWorkload& workload, std::uint64_t capacity) {
  return std::make_unique<Belady>(workload, capacity);
}

}  // namespace sluice::cache::testing
