#include "src/cache/policies/testing/fetch_account.h"

#include <algorithm>

namespace sluice::cache::testing {
namespace {

void begin_epoch(CachePolicy& policy, const SharedWorkload& workload, const SharedUse& use, Announces announces) {
  if (announces == Announces::kNothing) return;
  const auto& epochs = workload.orders[use.job];
  std::vector<std::uint32_t> order = epochs[use.epoch];
  if (announces == Announces::kFalsely) std::reverse(order.begin(), order.end());
  const std::size_t position = announces == Announces::kFalsely ? order.size() / 2 : 0;
  policy.begin_epoch(use.job, order, static_cast<std::uint32_t>(position));
  if (announces == Announces::kNextEpoch && use.epoch + 1 < epochs.size())
    policy.announce_next_epoch(use.job, epochs[use.epoch + 1]);
}

}  // namespace

CacheSpace space_of(const SharedWorkload& workload, std::uint64_t capacity_bytes) {
  return {workload.bytes, capacity_bytes};
}

FetchAccount account_of(CachePolicy& policy, const SharedWorkload& workload, const std::vector<Announces>& announces) {
  FetchAccount account;
  for (std::size_t i = 0; i < workload.uses.size(); ++i) {
    const SharedUse& use = workload.uses[i];
    if (use.position == 0)
      begin_epoch(policy, workload, use, use.job < announces.size() ? announces[use.job] : Announces::kEpoch);
    const Served served = policy.serve(use.job, use.sample);
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
