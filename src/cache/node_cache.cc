#include "src/cache/node_cache.h"

#include "src/base/checksum.h"

namespace sluice::cache {

NodeCache::NodeCache(std::uint64_t memory_bytes, NodeCounters& counters, bool tells_room)
    : counters_(counters), tells_room_(tells_room), memory_(memory_bytes) {}

Result<void> NodeCache::open(const OpenSharedDisk& open_disk, const std::stop_token& stop) {
  SLUICE_TRY(opened_, open_disk(counters_.store, stop));
  reclaimer_ = std::make_unique<Reclaimer>(*opened_);
  disk_ = opened_.get();
  return {};
}

std::optional<Question> NodeCache::understand(std::span<const std::uint8_t> message) {
  auto question = decode_question(message);
  if (!question) ++counters_.refused_messages;
  return question;
}

std::optional<NodeAnswer> NodeCache::find_in_memory(const Question& question) {
  SharedDisk* const disk = disk_;
  if (disk != nullptr && question.job) disk->asked(*question.job, question.key);
  auto value = memory_.find(question.key);
  if (value == nullptr) return std::nullopt;
  return found(question.key, std::move(value), counters_.memory);
}

NodeAnswer NodeCache::find(const Key& key, bool tells_job) {
  SharedDisk* const disk = disk_;
  if (disk == nullptr) return missed();
  if (const auto value = read(*disk, key)) return found(key, value, counters_.disk);
  Answer answer = state();
  if (tells_job) {
    answer.is_wanted = disk->is_wanted(key) || (tells_room_ && disk->has_room_for_usual());
    reclaim_if_wanted(*disk);
  }
  return missed(answer);
}

std::optional<NodeAnswer> NodeCache::find_of_other(const Key& key) {
  if (auto value = memory_.find(key)) return found(key, std::move(value), counters_.memory);
  SharedDisk* const disk = disk_;
  if (disk == nullptr) return std::nullopt;
  const auto value = read(*disk, key);
  return value == nullptr ? std::nullopt : std::optional(found(key, value, counters_.disk));
}

NodeAnswer NodeCache::missed(const Answer& answer) {
  ++counters_.misses;
  const auto bytes = encode_answer(answer);
  return {{bytes.begin(), bytes.end()}, nullptr};
}

std::shared_ptr<const Value> NodeCache::read(SharedDisk& disk, const Key& key) {
  Value value;
  if (!disk.find(key, value.bytes) || record_bytes(key, value.bytes.size()) > kNodeRecordBytesMax) return nullptr;
  value.checksum = checksum(value.bytes);  // the store has compared the one on the disk
  auto shared = std::make_shared<const Value>(std::move(value));
  memory_.add(key, shared, counters_.store.records);
  return shared;
}

NodeAnswer NodeCache::keep(const Question& question) {
  memory_.drop_if_damaged(question.key);
  if (SharedDisk* const disk = disk_; disk != nullptr) {
    disk->keep(question.key, question.value);
    reclaim_if_wanted(*disk);
  }
  const auto answer = encode_answer(state());
  return {{answer.begin(), answer.end()}, nullptr};
}

std::optional<Announcement> NodeCache::understand_announcement(std::span<const std::uint8_t> message) {
  auto announcement = decode_announcement(message);
  if (!announcement) ++counters_.refused_messages;
  return announcement;
}

NodeAnswer NodeCache::announce(const Announcement& announcement, const Homes* homes) {
  const auto& [job, data_set_of_job, order, places] = announcement;
  // Of another part of it nothing is known.
  const std::uint64_t data_set = homes == nullptr ? data_set_of_job : data_set_of_job ^ homes->hash();
  SharedDisk* const disk = disk_;
  Answer taken = state();
  if (disk != nullptr) {
    const bool is_declared = places.empty() || disk->declare(job, data_set, places, homes);
    taken.is_found = is_declared && disk->begin_epoch(job, data_set, order);
  }
  if (taken.is_found) ++counters_.announced_epochs;
  const auto answer = encode_answer(taken);
  return {{answer.begin(), answer.end()}, nullptr};
}

void NodeCache::reclaim_if_wanted(const SharedDisk& disk) {
  if (disk.wants_reclaiming()) reclaimer_->wake();
}

Answer NodeCache::state() const {
  SharedDisk* const disk = disk_;
  if (disk == nullptr) return {.is_paused = true};
  return {.is_paused = disk->is_paused(), .free_bytes = disk->free_bytes()};
}

NodeAnswer NodeCache::found(const Key& key, std::shared_ptr<const Value> value, TierCounters& tier) const {
  ++tier.hits;
  tier.hit_bytes += value->bytes.size();
  Answer answer = state();
  answer.is_found = true;
  const auto first = encode_answer(answer);
  auto head = encode_head(key, value->bytes.size(), value->checksum);
  head.insert(head.begin(), first.begin(), first.end());
  return {std::move(head), std::move(value)};
}

}  // namespace sluice::cache
