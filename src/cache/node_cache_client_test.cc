// The node's cache as a process sees it, with everything that may go wrong on the way.
#include "src/cache/node_cache_client.h"

#include <cstring>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/cache/order/seeded_order.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"

namespace sluice::cache {
namespace {

using testing::Bytes;
using testing::key_of;
using testing::Node;
using testing::value_of;

constexpr std::size_t kSentBytes = 1000;

struct ClientOfNode {
  ClientOfNode() { node.start(); }

  bool has(const Key& key) {
    Bytes value;
    if (!client.find(key, value)) return false;
    CHECK(value == value_of(key, kSentBytes));
    return true;
  }
  void add(const Key& key) {
    Bytes value;
    CHECK_FALSE(client.find(key, value));  // as its users do; the answer tells of the room
    client.add(key, value_of(key, kSentBytes));
  }

  sluice::testing::ManualClock clock;
  Node node{clock};
  Counters counters;
  NodeCacheClient client{std::make_unique<testing::NodeLine>(node), 1, clock, counters};
};

TEST_CASE("what one process adds, another one finds, also after a restart of the daemon") {
  ClientOfNode node;
  node.add(key_of(1));
  Counters counters;
  NodeCacheClient other(std::make_unique<testing::NodeLine>(node.node), 2, node.clock, counters);
  Bytes value;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(other.find(key_of(1), value));
    CHECK(value == value_of(key_of(1), kSentBytes));
    CHECK_FALSE(other.find(key_of(2), value));
    node.node.start();
    CHECK(node.has(key_of(1)));
  }
  CHECK(counters.node_gone + counters.node_late + counters.node_busy + counters.node_wrong + counters.damaged == 0);
}

TEST_CASE("a record with no bytes is one, and is not a missing one") {
  ClientOfNode node;
  Bytes value{1, 2, 3};
  CHECK_FALSE(node.client.find(key_of(1), value));
  node.client.add(key_of(1), {});
  REQUIRE(node.client.find(key_of(1), value));
  CHECK(value.empty());
}

TEST_CASE("whatever comes back in place of the record is a miss and a counted error") {
  struct Case {
    const char* name;
    std::function<void(Bytes&)> on_its_way;
    bool is_answer;  // the rest of it is wrong
  };
  const std::size_t head = kAnswerBytes + kFixedHeadBytes;
  const std::vector<Case> cases = {
      {"nothing", [](Bytes& answer) { answer.clear(); }, false},
      {"a part of the first bytes", [](Bytes& answer) { answer.resize(kAnswerBytes - 1); }, false},
      {"another version of the messages", [](Bytes& answer) { answer[3] ^= 1; }, false},
      {"an unknown flag", [](Bytes& answer) { answer[4] |= 64; }, false},
      {"no record", [](Bytes& answer) { answer.resize(kAnswerBytes); }, true},
      {"a part of the head", [&](Bytes& answer) { answer.resize(head + 3); }, true},
      {"a part of the value", [](Bytes& answer) { answer.pop_back(); }, true},
      {"more than the value", [](Bytes& answer) { answer.push_back(0); }, true},
      {"a wrong byte of the value", [](Bytes& answer) { answer.back() ^= 1; }, true},
      {"a wrong length", [&](Bytes& answer) { answer[kAnswerBytes + 12] ^= 1; }, true},
      {"a wrong checksum", [&](Bytes& answer) { answer[kAnswerBytes + 16] ^= 1; }, true},
      {"a wrong key", [&](Bytes& answer) { answer[head] ^= 1; }, true},
      {"the record of another key",
       [](Bytes& answer) {
         const auto value = value_of(key_of(2), kSentBytes);
         const auto first = encode_answer({.is_found = true});
         answer.assign(first.begin(), first.end());
         const auto record = encode_head(key_of(2), value);
         answer.insert(answer.end(), record.begin(), record.end());
         answer.insert(answer.end(), value.begin(), value.end());
       },
       true},
  };
  for (const Case& wrong : cases) {
    INFO(wrong.name);
    ClientOfNode node;
    node.add(key_of(1));
    REQUIRE(node.has(key_of(1)));
    node.node.on_its_way = wrong.on_its_way;
    CHECK_FALSE(node.has(key_of(1)));
    CHECK(node.counters.damaged == (wrong.is_answer ? 1 : 0));
    CHECK(node.counters.node_wrong == (wrong.is_answer ? 0 : 1));
    node.node.on_its_way = nullptr;
    node.clock.advance(Breaker::kBackOffMin);
    CHECK(node.has(key_of(1)));
  }
}

TEST_CASE("a daemon that does not answer is left alone for a while, and longer each time") {
  struct Case {
    const char* name;
    Error error;
    const Count Counters::*counter;
  };
  for (const Case& failure : {Case{"gone", unavailable("connection reset"), &Counters::node_gone},
                              Case{"another user's", Error(ErrorCode::kPermissionDenied, "no"), &Counters::node_gone},
                              Case{"late", Error(ErrorCode::kDeadlineExceeded, "late"), &Counters::node_late},
                              Case{"busy", Error(ErrorCode::kResourceExhausted, "busy"), &Counters::node_busy},
                              Case{"of another version", invalid_argument("what?"), &Counters::node_wrong}}) {
    INFO(failure.name);
    ClientOfNode node;
    node.add(key_of(1));
    node.node.fails_with = failure.error;
    node.node.takes = NodeCacheClient::kPatience;
    const int before = node.node.questions;
    Clock::Duration waited{0};
    for (int i = 0; i < 3600; ++i) {  // an hour of samples, one a second
      const auto started = node.clock.now();
      CHECK_FALSE(node.has(key_of(1)));
      node.client.add(key_of(2), value_of(key_of(2), kSentBytes));
      waited += node.clock.now() - started;
      node.clock.advance(std::chrono::seconds(1));
    }
    const int questions = node.node.questions - before;
    CHECK(questions == static_cast<int>(node.counters.*failure.counter));
    CHECK(questions > 100);
    CHECK(questions < 130);  // every 30 s
    CHECK(waited < std::chrono::seconds(36));
    CHECK(node.counters.not_stored_failed == 3600);
    CHECK(node.client.is_paused());
    CHECK_FALSE(node.client.has_room_for(key_of(2), 10));
    node.node.fails_with.reset();
    node.clock.advance(Breaker::kBackOffMax);
    CHECK(node.has(key_of(1)));
    CHECK_FALSE(node.client.is_paused());
    CHECK(node.client.has_room_for(key_of(2), 10));
  }
}

TEST_CASE("what is asked ahead may take longer than what a thread waits for") {
  ClientOfNode node;
  node.add(key_of(1));
  Bytes value;
  CHECK(node.client.find(key_of(1), value));
  CHECK(node.node.patience == NodeCacheClient::kPatience);
  CHECK(node.client.find_ahead(key_of(1), value));
  CHECK(node.node.patience == NodeCacheClient::kPatienceAhead * NodeCacheClient::kPatience);
}

TEST_CASE("what has no room, or is too large, is not sent; the answers tell of the room") {
  ClientOfNode node;
  CHECK_FALSE(node.client.has_room_for(key_of(1), 10));  // nothing has been said yet
  CHECK_FALSE(node.has(key_of(1)));
  CHECK(node.client.free_bytes() == 10 << 20);
  CHECK(node.client.has_room_for(key_of(1), 10));
  CHECK_FALSE(node.client.has_room_for(key_of(1), 11 << 20));
  CHECK_FALSE(node.client.has_room_for({std::string(kPlaceBytesMax + 1, 'x'), ""}, 10));
  const int before = node.node.questions;
  node.client.add(key_of(1), Bytes(11 << 20));
  CHECK(node.node.questions == before);
  CHECK(node.counters.not_stored_full == 1);
  node.node.start({.bytes = std::uint64_t{1} << 40});
  CHECK_FALSE(node.has(key_of(1)));
  CHECK_FALSE(node.client.has_room_for(key_of(1), kNodeRecordBytesMax));
  CHECK(node.client.has_room_for(key_of(1), kNodeRecordBytesMax - 1000));
}

TEST_CASE("a cache of an earlier version is asked without the job after its first refusal, and serves as it did") {
  ClientOfNode node;
  node.node.is_of_earlier_version = true;
  CHECK_FALSE(node.has(key_of(1)));
  CHECK(node.counters.node_wrong == 1);
  node.clock.advance(Breaker::kBackOffMin);
  for (int i = 1; i < 5; ++i) {
    node.add(key_of(i));
    CHECK(node.has(key_of(i)));
  }
  CHECK(node.counters.node_wrong == 1);
}

TEST_CASE(
    "a process of an earlier version, which tells no job, gets answers that it knows, and keeps nothing for others") {
  ClientOfNode node;
  Counters counters;
  NodeCacheClient earlier(std::make_unique<testing::NodeLine>(node.node), std::nullopt, node.clock, counters);
  std::uint32_t flags = 0;
  node.node.on_its_way = [&](const Bytes& answer) { flags |= answer[4]; };
  Bytes value;
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(earlier.find(key_of(i), value));
    earlier.add(key_of(i), value_of(key_of(i), kSentBytes));
    REQUIRE(earlier.find(key_of(i), value));
    CHECK(value == value_of(key_of(i), kSentBytes));
  }
  CHECK(flags == 1);
  CHECK(counters.node_wrong == 0);
}

TEST_CASE("an epoch is announced with the data set's places once, and again where the daemon does not know them") {
  ClientOfNode node;
  const std::vector<std::uint64_t> places{7, 8, 9}, others{7, 8};
  const auto announced = [&] { return node.node.counters->announced_epochs.load(); };
  const auto announces = [&](const std::vector<std::uint64_t>& data_set, std::uint64_t seed) {
    node.client.announce(data_set, {.seed = seed, .length = data_set.size()});
    return node.node.announced_bytes;
  };
  CHECK(announces(places, 1) == kAnnouncementBytes + 3 * 8);
  CHECK(announces(places, 2) == kAnnouncementBytes);
  CHECK(announced() == 2);
  CHECK(announces(others, 1) == kAnnouncementBytes + 2 * 8);
  node.node.start();
  CHECK(announces(others, 2) == kAnnouncementBytes + 2 * 8);
  CHECK(announced() == 1);
  node.client.announce(others, {.length = 3});  // of another data set
  CHECK(announced() == 1);
}

TEST_CASE("what is announced to no daemon, an earlier one or one that fails, is lost, and the questions go on") {
  ClientOfNode node;
  node.add(key_of(1));
  const std::vector<std::uint64_t> places{7, 8, 9};
  SECTION("gone") { node.node.fails_with = unavailable("no daemon"); }
  SECTION("of an earlier version") { node.node.is_of_earlier_version = true; }
  SECTION("an answer that is none") {
    node.node.on_its_way = [](Bytes& answer) { answer.resize(3); };
  }
  node.client.announce(places, {.length = places.size()});
  node.node.fails_with.reset();
  node.node.is_of_earlier_version = false;
  node.node.on_its_way = nullptr;
  CHECK(node.has(key_of(1)));
  CHECK(node.node.counters->announced_epochs <= 1);
  CHECK(node.counters.node_gone + node.counters.node_wrong == 0);
}

TEST_CASE("an announcement that is cut, or changed where it says what it is, is none") {
  Announcement announcement{.job = 1, .data_set = 2, .order = {.seed = 3, .length = 2}, .places = {4, 5}};
  const auto fixed = encode_announcement(announcement);
  Bytes message(fixed.begin(), fixed.end());
  message.resize(message.size() + 16);
  std::memcpy(message.data() + fixed.size(), announcement.places.data(), 16);
  const auto decoded = decode_announcement(message);
  REQUIRE(decoded);
  CHECK(decoded->order == announcement.order);
  CHECK(decoded->places == announcement.places);
  for (std::size_t length = 0; length < message.size(); ++length)
    CHECK_FALSE(decode_announcement(std::span(message).first(length)));
  for (const std::size_t at : {0, 4, 16, 20, 40, 56, 60}) {
    Bytes changed = message;
    changed[at] ^= 0x40;
    INFO(at);
    CHECK_FALSE(decode_announcement(changed));
  }
}

TEST_CASE("of a disk that jobs share a process sends what is used sooner than what is there, and nothing else") {
  constexpr std::uint32_t kSamples = 600;
  ClientOfNode node;
  node.node.start({.bytes = 16 * 16384, .records = 1 << 12, .segment_bytes = 15'500}, 0);
  Counters counters;
  NodeCacheClient other(std::make_unique<testing::NodeLine>(node.node), 2, node.clock, counters);
  int reads = 0, keeps = 0;
  std::uint64_t refused = 0;
  std::vector<std::uint32_t> orders[2];
  for (std::uint32_t step = 0; step < 6 * kSamples; ++step) {
    for (const std::uint32_t job : {0U, 1U}) {
      const std::uint32_t at = (step + job * kSamples / 2) % kSamples;
      if (at == 0 || orders[job].empty()) orders[job] = *seeded_order(step + job, kSamples);
      NodeCacheClient& client = job == 0 ? node.client : other;
      const Key key = key_of(static_cast<int>(orders[job][at]));
      Bytes value;
      if (!client.find(key, value)) {
        if (step > 3 * kSamples) ++reads;
        client.add(key, value_of(key, kSentBytes));
        // What goes does so in the background. How late that is on a busy machine does not count here.
        for (int turn = 0; turn < 10'000 && node.node.cache->is_reclaiming(); ++turn) std::this_thread::yield();
      }
    }
    if (step != 3 * kSamples) continue;
    keeps = node.node.keeps;
    refused = node.node.counters->store.not_stored_full;
  }
  CHECK(node.node.counters->store.evicted > 100);
  CHECK(reads < .65 * 6 * kSamples);
  CHECK(node.node.keeps - keeps < .75 * reads);
  CHECK(node.node.counters->store.not_stored_full - refused <= .1 * (node.node.keeps - keeps));
}

TEST_CASE("a daemon whose disk refuses what is to be kept says so, and gets nothing more meanwhile") {
  ClientOfNode node;
  CHECK_FALSE(node.has(key_of(1)));
  node.node.disk->refuses_writes = true;
  node.client.add(key_of(1), value_of(key_of(1), kSentBytes));
  CHECK(node.client.is_paused());
  const int before = node.node.questions;
  node.client.add(key_of(2), value_of(key_of(2), kSentBytes));
  CHECK(node.node.questions == before);
  node.node.disk->refuses_writes = false;
  node.clock.advance(SegmentStore::kPauseAfterFailure);
  node.add(key_of(2));  // its question tells that the pause is over
  CHECK(node.has(key_of(2)));
}

TEST_CASE("what a question takes is measured, also of a cache that has all there is") {
  ClientOfNode node;
  node.add(key_of(1));
  Counters counters;
  NodeCacheClient other(std::make_unique<testing::NodeLine>(node.node), 2, node.clock, counters);
  CHECK(other.asking_seconds() == 0);
  node.node.takes = std::chrono::milliseconds(2);
  Bytes value;
  REQUIRE(other.find(key_of(1), value));
  CHECK(value == value_of(key_of(1), kSentBytes));
  CHECK(other.asking_seconds() == Approx(0.002));
  node.node.takes = std::chrono::milliseconds(4);
  for (int i = 0; i < 200; ++i) CHECK_FALSE(other.find(key_of(100 + i), value));
  CHECK(other.asking_seconds() == Approx(0.004).epsilon(0.01));
}

}  // namespace
}  // namespace sluice::cache
