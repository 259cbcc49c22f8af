#include "src/cache/announced_orders.h"

#include <utility>

#include "src/cache/order/seeded_order.h"

namespace sluice::cache {

namespace {

std::vector<std::uint32_t> uses_here(const std::vector<std::uint32_t>& uses, const std::vector<bool>& is_here) {
  if (is_here.empty()) return uses;
  std::vector<std::uint32_t> index(is_here.size());  // among the samples that are here
  std::uint32_t here = 0;
  for (std::size_t sample = 0; sample < is_here.size(); ++sample) index[sample] = is_here[sample] ? here++ : 0;
  std::vector<std::uint32_t> found;
  for (const std::uint32_t use : uses)
    if (is_here[use]) found.push_back(index[use]);
  return found;
}

}  // namespace

void AnnouncedOrders::declared(Job job, DataSet data_set, std::uint64_t samples, std::vector<bool> is_here) {
  if (jobs_.size() >= kJobsMost && !jobs_.contains(job)) jobs_.clear();  // those that still run declare again
  jobs_[job] = {data_set, samples, std::move(is_here), {}};
}

bool AnnouncedOrders::has_declared(Job job, DataSet data_set) const { return data_set_of(job) == data_set; }

std::optional<AnnouncedOrders::DataSet> AnnouncedOrders::data_set_of(Job job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second.data_set);
}

Result<std::vector<std::uint32_t>> AnnouncedOrders::uses_of(Job job, const EpochOrder& order) {
  Announced& announced = jobs_.at(job);
  if (order.length != announced.samples)
    return invalid_argument("an order of " + std::to_string(order.length) + " samples of " +
                            std::to_string(announced.samples));
  if (order.ranks > kRanksMost || order.rank >= order.ranks)
    return invalid_argument("rank " + std::to_string(order.rank) + " of " + std::to_string(order.ranks));
  SLUICE_TRY(const auto all, seeded_order(order.seed, static_cast<std::uint32_t>(order.length)));
  EpochOrder of_all_ranks = order;
  of_all_ranks.rank = 0;
  of_all_ranks.is_next = false;
  auto& [newest, other] = announced.epochs;
  if (newest.order != of_all_ranks) std::swap(newest, other);
  if (newest.order != of_all_ranks) newest = {of_all_ranks, {}};
  newest.ranks.insert(order.rank);
  std::vector<std::vector<std::uint32_t>> parts;
  for (const std::uint32_t rank : newest.ranks) {
    SLUICE_TRY(parts.emplace_back(), part_of_rank(all, {rank, order.ranks, order.drops_last}));
  }
  std::vector<std::uint32_t> uses;
  for (std::size_t i = 0; i < parts.front().size(); ++i)
    for (const auto& part : parts) uses.push_back(part[i]);
  return uses_here(uses, announced.is_here);
}

}  // namespace sluice::cache
