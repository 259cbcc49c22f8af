#include "src/cache/node_cache.h"

#include "src/cache/checksum.h"

namespace sluice::cache {

NodeCache::NodeCache(std::uint64_t memory_bytes, NodeCounters& counters) : counters_(counters), memory_(memory_bytes) {}

Result<void> NodeCache::open(const OpenStore& open_store, const std::stop_token& stop) {
  SLUICE_TRY(opened_, open_store(counters_.store, stop));
  store_ = opened_.get();
  return {};
}

std::optional<Question> NodeCache::understand(std::span<const std::uint8_t> message) {
  auto question = decode_question(message);
  if (!question) ++counters_.refused_messages;
  return question;
}

std::optional<NodeAnswer> NodeCache::find_in_memory(const Key& key) {
  auto value = memory_.find(key);
  if (value == nullptr) return std::nullopt;
  return found(key, std::move(value), counters_.memory);
}

NodeAnswer NodeCache::find(const Key& key) {
  RecordStore* const store = store_;
  Value value;
  if (store == nullptr || !store->find(key, value.bytes) ||
      record_bytes(key, value.bytes.size()) > kNodeRecordBytesMax) {
    ++counters_.misses;
    const auto answer = encode_answer(state());
    return {{answer.begin(), answer.end()}, nullptr};
  }
  value.checksum = checksum(value.bytes);  // the store has compared the one on the disk
  const auto shared = std::make_shared<const Value>(std::move(value));
  memory_.add(key, shared, counters_.store.records);
  return found(key, shared, counters_.disk);
}

NodeAnswer NodeCache::keep(const Question& question) {
  memory_.drop_if_damaged(question.key);
  if (RecordStore* const store = store_; store != nullptr) store->add(question.key, question.value);
  const auto answer = encode_answer(state());
  return {{answer.begin(), answer.end()}, nullptr};
}

Answer NodeCache::state() const {
  RecordStore* const store = store_;
  if (store == nullptr) return {.is_paused = true};
  return {.is_paused = store->is_paused(), .free_bytes = store->free_bytes()};
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
