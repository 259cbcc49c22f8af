#include <algorithm>

#include "src/cache/order/shared_records.h"
#include "src/cache/order/testing/simulated_policy.h"

namespace sluice::cache::testing {
namespace {

class AnnouncedOrders final : public SimulatedPolicy {
 public:
  AnnouncedOrders(const SharedWorkload& workload, std::uint64_t capacity_bytes, std::vector<Announces> announces,
                  OnKept on_kept)
      : workload_(workload),
        announces_(std::move(announces)),
        on_kept_(std::move(on_kept)),
        records_({.capacity_bytes = capacity_bytes, .places = workload.samples}) {
    for (std::uint32_t sample = 0; sample < workload.samples; ++sample) places_.push_back(sample);
  }

  std::string_view name() const override { return "announced"; }

  Served serve(const SharedUse& use) override {
    if (use.position == 0) begin_epoch(use);
    records_.asked(use.job, use.sample);
    if (records_.holds(use.sample)) return {use.sample, 0};
    const auto admission = records_.offer(use.sample, workload_.bytes[use.sample]);
    if (admission.is_kept && on_kept_) on_kept_(use.sample, {admission.evicted.begin(), admission.evicted.end()});
    return {use.sample, 1};
  }

 private:
  void begin_epoch(const SharedUse& use) {
    const Announces announces = announces_[use.job];
    if (announces == Announces::kNothing) return;
    if (use.epoch == 0) static_cast<void>(records_.declare(use.job, places_));
    const auto& epochs = workload_.orders[use.job];
    std::vector<std::uint32_t> order = epochs[use.epoch];
    if (announces == Announces::kFalsely) std::reverse(order.begin(), order.end());
    const std::size_t position = announces == Announces::kFalsely ? order.size() / 2 : 0;
    static_cast<void>(records_.begin_epoch(use.job, order, static_cast<std::uint32_t>(position)));
    if (announces == Announces::kNextEpoch && use.epoch + 1 < epochs.size())
      static_cast<void>(records_.announce_next_epoch(use.job, epochs[use.epoch + 1]));
  }

  const SharedWorkload& workload_;
  const std::vector<Announces> announces_;
  const OnKept on_kept_;
  SharedRecords records_;
  std::vector<SharedRecords::Place> places_;  // of each sample: its number will do
};

}  // namespace

std::unique_ptr<SimulatedPolicy> announced_orders(const SharedWorkload& workload, std::uint64_t capacity_bytes,
                                                  const std::vector<Announces>& announces, OnKept on_kept) {
  return std::make_unique<AnnouncedOrders>(workload, capacity_bytes, announces, std::move(on_kept));
}

}  // namespace sluice::cache::testing
