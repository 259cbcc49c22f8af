#include "scheduler/simulator/world/data_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "scheduler/simulator/world/random.h"

namespace sluice::simulator {
namespace {

struct NamedRule {
  std::string_view name;
  CacheRule rule;
};
constexpr std::array kRules = {
    NamedRule{"none", CacheRule::kNone},     NamedRule{"lru", CacheRule::kLru},
    NamedRule{"keep", CacheRule::kKeep},     NamedRule{"reuse-distance", CacheRule::kReuseDistance},
    NamedRule{"quiver", CacheRule::kQuiver}, NamedRule{"seneca", CacheRule::kSeneca}};

// Chunks of the largest data set; smaller ones in proportion.
constexpr double kUnitsOfLargest = 1e6;
constexpr int kChunksOfBlock = DataCache::kChunks / DataCache::kBlocks;

bool substitutes(CacheRule rule) { return rule == CacheRule::kQuiver || rule == CacheRule::kSeneca; }

cache::MadeCachePolicy policy_of(CacheRule rule, cache::CacheSpace space) {
  switch (rule) {
    case CacheRule::kNone: return cache::no_cache();
    case CacheRule::kLru: return cache::least_recently_used(std::move(space));
    case CacheRule::kKeep: return cache::never_evict(std::move(space));
    case CacheRule::kReuseDistance: return cache::announced_orders(std::move(space));
    case CacheRule::kQuiver: return cache::substitution_on_demand(std::move(space));
    case CacheRule::kSeneca: return cache::substitution_refilled(std::move(space));
  }
  return cache::no_cache();
}

}  // namespace

Result<CacheRule> cache_rule(std::string_view name) {
  std::string known;
  for (const NamedRule& each : kRules) {
    if (each.name == name) return each.rule;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  return invalid_argument("there is no cache \"" + std::string(name) + "\"; there are " + known);
}

std::string_view name_of(CacheRule rule) {
  return std::find_if(kRules.begin(), kRules.end(), [&](const NamedRule& each) { return each.rule == rule; })->name;
}

DataCache::DataCache(const Cluster& cluster, const Workload& workload, std::uint64_t seed)
    : cluster_(cluster), workload_(workload), seed_(seed), readers_(workload.size()) {
  if (cluster.data_sets.empty()) return;
  substitutes(cluster.cache.rule) ? make_caches_by_data_set() : make_common_cache();
}

void DataCache::make_common_cache() {
  double largest = 0;
  for (const DataSet& data : cluster_.data_sets) largest = std::max(largest, data.gigabytes);
  const double unit = largest / kChunks / kUnitsOfLargest;  // GB
  cache::CacheSpace space;
  space.capacity_bytes = static_cast<std::uint64_t>(cluster_.cache.gigabytes / unit);
  for (const DataSet& data : cluster_.data_sets) {
    places_.push_back({0, static_cast<std::uint32_t>(space.bytes.size())});
    const double units = std::max(1.0, std::round(data.gigabytes / kChunks / unit));
    space.bytes.insert(space.bytes.end(), kChunks, static_cast<std::uint32_t>(units));
  }
  policies_.push_back(policy_of(cluster_.cache.rule, std::move(space)));
}

void DataCache::make_caches_by_data_set() {
  const std::size_t count = cluster_.data_sets.size();
  std::vector<int> epochs(count, 0);
  for (const JobSpec& job : workload_)
    if (job.data_set >= 0) epochs[job.data_set] += job.epochs;
  std::vector<std::size_t> by_epochs(count);
  std::iota(by_epochs.begin(), by_epochs.end(), 0);
  std::stable_sort(by_epochs.begin(), by_epochs.end(),
                   [&](std::size_t a, std::size_t b) { return epochs[a] > epochs[b]; });
  double left = cluster_.cache.gigabytes;
  std::vector<double> gigabytes(count, 0);
  for (const std::size_t data : by_epochs) {
    gigabytes[data] = std::min(left, cluster_.data_sets[data].gigabytes);
    left -= gigabytes[data];
  }
  for (std::size_t data = 0; data < count; ++data) {
    const double chunks = kChunks * gigabytes[data] / cluster_.data_sets[data].gigabytes;
    places_.push_back({data, 0});
    policies_.push_back(policy_of(cluster_.cache.rule, {std::vector<std::uint32_t>(kChunks, 1),
                                                        static_cast<std::uint64_t>(std::floor(chunks + 1e-9))}));
  }
}

// Fisher and Yates.
std::vector<std::uint32_t> DataCache::order_of(int job, int epoch) const {
  std::vector<std::uint32_t> order(kChunks);
  std::iota(order.begin(), order.end(), places_[workload_[job].data_set].first);
  const auto first_draw = static_cast<std::uint64_t>(epoch) * kChunks;
  for (std::size_t i = order.size(); i > 1; --i) {
    const double draw = uniform({seed_, Draw::kOrder, static_cast<std::uint64_t>(job), first_draw + i});
    std::swap(order[i - 1], order[static_cast<std::size_t>(draw * static_cast<double>(i))]);
  }
  return order;
}

double DataCache::read(int job, int block) {
  const int data_set = workload_[job].data_set;
  cache::CachePolicy& policy = *policies_[places_[data_set].policy];
  const auto name = static_cast<std::uint32_t>(job);
  Reader& reader = readers_[job];
  const int begin = block % kBlocks * kChunksOfBlock;
  if (begin == 0 || block != reader.next_block) {
    reader.order = order_of(job, block / kBlocks);
    policy.begin_epoch(name, reader.order, static_cast<std::uint32_t>(begin));
    const int next = block / kBlocks + 1;
    if (workload_[job].next_epoch_known && next < workload_[job].epochs)
      policy.announce_next_epoch(name, order_of(job, next));
  }
  reader.next_block = block + 1;
  std::uint32_t fetches = 0;
  for (int i = begin; i < begin + kChunksOfBlock; ++i) {
    const cache::Served served = policy.serve(name, reader.order[i]);
    if (served.sample != reader.order[i]) keeps_orders_ = false;
    fetches += served.fetches;
  }
  const double gigabytes_of_chunk = cluster_.data_sets[data_set].gigabytes / kChunks;
  reader.reads.gigabytes += kChunksOfBlock * gigabytes_of_chunk;
  reader.reads.fetched_gigabytes += fetches * gigabytes_of_chunk;
  return static_cast<double>(fetches) / kChunksOfBlock;
}

void DataCache::leave(int job) {
  if (workload_[job].data_set < 0) return;
  policies_[places_[workload_[job].data_set].policy]->leave(static_cast<std::uint32_t>(job));
  readers_[job].next_block = -1;
}

}  // namespace sluice::simulator
