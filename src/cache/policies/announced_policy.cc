#include <set>

#include "src/cache/order/shared_records.h"
#include "src/cache/policies/cache_policy.h"

namespace sluice::cache {
namespace {

SharedRecords::Limits limits_of(const CacheSpace& space) {
  return {.capacity_bytes = space.capacity_bytes, .places = static_cast<std::uint32_t>(space.bytes.size())};
}

class AnnouncedOrders final : public CachePolicy {
 public:
  AnnouncedOrders(CacheSpace space, OnKept on_kept)
      : space_(std::move(space)), on_kept_(std::move(on_kept)), records_(limits_of(space_)) {
    for (std::uint32_t sample = 0; sample < space_.bytes.size(); ++sample) places_.push_back(sample);
  }

  std::string_view name() const override { return "announced"; }

  // What a bound refuses, the cache sees as it comes.
  void begin_epoch(std::uint32_t job, const std::vector<std::uint32_t>& order, std::uint32_t position) override {
    if (declared_.insert(job).second) static_cast<void>(records_.declare(job, places_));
    static_cast<void>(records_.begin_epoch(job, order, position));
  }

  void announce_next_epoch(std::uint32_t job, const std::vector<std::uint32_t>& order) override {
    static_cast<void>(records_.announce_next_epoch(job, order));
  }

  Served serve(std::uint32_t job, std::uint32_t sample) override {
    records_.asked(job, sample);
    if (records_.holds(sample)) return {sample, 0};
    const auto admission = records_.offer(sample, space_.bytes[sample]);
    if (admission.is_kept && on_kept_) on_kept_(sample, {admission.evicted.begin(), admission.evicted.end()});
    return {sample, 1};
  }

  void leave(std::uint32_t job) override {
    declared_.erase(job);
    records_.leave(job);
  }

 private:
  const CacheSpace space_;
  const OnKept on_kept_;
  SharedRecords records_;
  std::vector<SharedRecords::Place> places_;  // of each sample: its number will do
  std::set<std::uint32_t> declared_;          // jobs
};

}  // namespace

MadeCachePolicy announced_orders(CacheSpace space, OnKept on_kept) {
  return std::make_unique<AnnouncedOrders>(std::move(space), std::move(on_kept));
}

}  // namespace sluice::cache
