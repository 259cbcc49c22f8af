#include "src/cache/node_cache.h"

#include "src/base/testing/catch.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using testing::key_of;
using testing::Node;
using testing::value_of;
using Wish = NodeCacheLine::Wish;

constexpr std::size_t kValueBytes = 1000;

struct NodeOfClients {
  NodeOfClients() { node.start(); }

  void keep(const Key& key) {
    const auto value = value_of(key, kValueBytes);
    Bytes message = encode_head(key, value);
    message.insert(message.end(), value.begin(), value.end());
    REQUIRE(node.answer(Wish::kKeep, message).ok());
  }
  // Compares bytes and checksum, too.
  bool has(const Key& key) {
    const auto answer = node.answer(Wish::kFind, encode_head(key, {}));
    REQUIRE(answer.ok());
    const auto decoded = decode_answer(std::span(*answer).first(kAnswerBytes));
    REQUIRE(decoded);
    if (!decoded->is_found) return false;
    const std::size_t head = kAnswerBytes + encode_head(key, {}).size();
    const Bytes value(answer->begin() + static_cast<std::ptrdiff_t>(head), answer->end());
    CHECK(value == value_of(key, kValueBytes));
    CHECK(is_record_of(key, std::span(*answer).subspan(kAnswerBytes, head - kAnswerBytes), value));
    return true;
  }

  sluice::testing::ManualClock clock;
  Node node{clock};
};

TEST_CASE("what is asked for again comes from memory, and is asked of the disk once") {
  NodeOfClients cache;
  const NodeCounters& counters = *cache.node.counters;
  CHECK_FALSE(cache.has(key_of(1)));
  cache.keep(key_of(1));
  CHECK(cache.node.cache->memory_records() == 0);
  for (int i = 0; i < 5; ++i) CHECK(cache.has(key_of(1)));
  CHECK(counters.misses == 1);
  CHECK(counters.disk.hits == 1);
  CHECK(counters.memory.hits == 4);
  CHECK(counters.memory.hit_bytes == 4 * kValueBytes);
  cache.node.disk->refuses_reads = true;
  CHECK(cache.has(key_of(1)));
  CHECK(cache.node.cache->memory_bytes() > kValueBytes);
}

TEST_CASE("a file that has changed is not found in memory either") {
  NodeOfClients cache;
  cache.keep(key_of(1));
  CHECK(cache.has(key_of(1)));
  CHECK_FALSE(cache.has(key_of(1, 2)));
  cache.keep(key_of(1, 2));
  CHECK(cache.has(key_of(1, 2)));
  CHECK(cache.has(key_of(1, 2)));
  CHECK_FALSE(cache.has(key_of(1)));
}

TEST_CASE("a record that is damaged on the disk is a miss, and may be kept anew") {
  NodeOfClients cache;
  cache.keep(key_of(1));
  cache.node.disk->files.begin()->second->back() ^= 4;
  CHECK_FALSE(cache.has(key_of(1)));
  CHECK(cache.node.counters->store.damaged == 1);
  cache.keep(key_of(1));
  CHECK(cache.has(key_of(1)));
}

TEST_CASE("before its disk is open all is missed, nothing is kept, and it says so") {
  sluice::testing::ManualClock clock;
  Node node(clock);
  node.counters = std::make_unique<NodeCounters>();
  node.cache = std::make_unique<NodeCache>(1 << 20, *node.counters);
  CHECK_FALSE(node.cache->is_open());
  const auto answer = node.answer(Wish::kFind, encode_head(key_of(1), {}));
  REQUIRE(answer.ok());
  const auto decoded = decode_answer(*answer);
  REQUIRE(decoded);
  CHECK_FALSE(decoded->is_found);
  CHECK(decoded->is_paused);
  CHECK(decoded->free_bytes == 0);
  REQUIRE(node.answer(Wish::kKeep, encode_head(key_of(1), {})).ok());
  const auto in_use = std::make_shared<testing::DiskContent>();
  in_use->is_locked = true;
  CHECK_FALSE(
      node.cache->open(shared_disk_on(std::make_unique<testing::MemoryDisk>(in_use), {.bytes = 1000}, clock), {}).ok());
  CHECK_FALSE(node.cache->is_open());
}

TEST_CASE("what is no question is refused and counted") {
  NodeOfClients cache;
  const auto good = encode_head(key_of(1), value_of(key_of(1), 3));
  Bytes whole = good;
  const auto value = value_of(key_of(1), 3);
  whole.insert(whole.end(), value.begin(), value.end());
  REQUIRE(cache.node.cache->understand(whole));
  CHECK(cache.node.counters->refused_messages == 0);
  std::vector<Bytes> wrong = {{}, Bytes(kFixedHeadBytes), good, Bytes(whole.begin(), whole.end() - 1)};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    wrong.push_back(whole);
    wrong.back()[at] ^= 0x10;
  }
  for (const Bytes& message : wrong) CHECK_FALSE(cache.node.cache->understand(message));
  CHECK(cache.node.counters->refused_messages == wrong.size());
}

}  // namespace
}  // namespace sluice::cache
