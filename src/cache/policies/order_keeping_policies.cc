#include <list>
#include <unordered_map>
#include <utility>

#include "src/cache/policies/cache_policy.h"

namespace sluice::cache {
namespace {

class NoCache final : public CachePolicy {
 public:
  std::string_view name() const override { return "no cache"; }
  Served serve(std::uint32_t /*job*/, std::uint32_t sample) override { return {sample, 1}; }
};

// The front of a list goes first. `moves_up`: one that is used goes to the back. `evicts`: or what is full stays so.
class Queue final : public CachePolicy {
 public:
  Queue(std::string_view name, CacheSpace space, bool moves_up, bool evicts)
      : name_(name), space_(std::move(space)), moves_up_(moves_up), evicts_(evicts) {}

  std::string_view name() const override { return name_; }

  Served serve(std::uint32_t /*job*/, std::uint32_t sample) override {
    if (const auto found = places_.find(sample); found != places_.end()) {
      if (moves_up_) queue_.splice(queue_.end(), queue_, found->second);
      return {sample, 0};
    }
    const std::uint64_t bytes = space_.bytes[sample];
    if (bytes > space_.capacity_bytes) return {sample, 1};
    while (evicts_ && bytes_ + bytes > space_.capacity_bytes) {
      bytes_ -= space_.bytes[queue_.front()];
      places_.erase(queue_.front());
      queue_.pop_front();
    }
    if (bytes_ + bytes > space_.capacity_bytes) return {sample, 1};
    bytes_ += bytes;
    places_[sample] = queue_.insert(queue_.end(), sample);
    return {sample, 1};
  }

 private:
  const std::string_view name_;
  const CacheSpace space_;
  const bool moves_up_;
  const bool evicts_;
  std::list<std::uint32_t> queue_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> places_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

void CachePolicy::begin_epoch(std::uint32_t /*job*/, const std::vector<std::uint32_t>& /*order*/,
                              std::uint32_t /*position*/) {}
void CachePolicy::announce_next_epoch(std::uint32_t /*job*/, const std::vector<std::uint32_t>& /*order*/) {}
void CachePolicy::leave(std::uint32_t /*job*/) {}

MadeCachePolicy no_cache() { return std::make_unique<NoCache>(); }

MadeCachePolicy least_recently_used(CacheSpace space) {
  return std::make_unique<Queue>("LRU", std::move(space), true, true);
}

MadeCachePolicy first_in_first_out(CacheSpace space) {
  return std::make_unique<Queue>("FIFO", std::move(space), false, true);
}

MadeCachePolicy never_evict(CacheSpace space) {
  return std::make_unique<Queue>("never evict", std::move(space), false, false);
}

}  // namespace sluice::cache
