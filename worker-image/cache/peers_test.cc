// Daemons that share their records, with everything that may go wrong between them.
#include "worker-image/cache/peers.h"

#include <prometheus/registry.h>

#include "src/executor/testing/metrics_text.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/testing/cache_cluster.h"

namespace sluice::node_cache {
namespace {

using testing::Bytes;
using testing::CacheCluster;
using testing::CacheDaemon;
using testing::CachePod;
using testing::key_of;
using testing::kValueBytes;
using testing::value_of;

constexpr int kRecords = 60;

TEST_CASE("what a pod of one node has read, pods of all nodes find, and one daemon has it") {
  CacheCluster cluster(3);
  CachePod first(cluster, 0), second(cluster, 1), third(cluster, 2);
  for (int record = 0; record < kRecords; ++record) CHECK(first.fetches(record));
  for (int record = 0; record < kRecords; ++record) {
    CHECK_FALSE(first.fetches(record));
    CHECK_FALSE(second.fetches(record));
    CHECK_FALSE(third.fetches(record));
  }
  CHECK(cluster.records() == kRecords);
  for (int node = 0; node < 3; ++node) {
    const CacheDaemon& daemon = cluster.at(node);
    CHECK(daemon.node.counters->store.records > kRecords / 6);
    CHECK(daemon.peers.count() == 2);
  }
  const PeerCounters& seen = cluster.at(1).peers.counters();
  CHECK(seen.hits == kRecords - cluster.at(1).node.counters->store.records);
  CHECK(seen.hit_bytes == seen.hits * kValueBytes);
  CHECK(seen.finds <= seen.hits + 1);  // one to measure what a question takes
  CHECK(cluster.at(0).peers.counters().keeps == kRecords - cluster.at(0).node.counters->store.records);
  CHECK(first.errors() + second.errors() + third.errors() == 0);
  prometheus::Registry registry;
  const transport::UnaryCounters servers;
  program::ShownCounts shown = shown_counts(registry, *cluster.at(1).node.cache, *cluster.at(1).node.counters,
                                            *cluster.at(1).service, servers, nullptr, &cluster.at(1).peers);
  shown.tick();
  const auto lines = sluice::testing::metrics_lines(registry);
  CHECK(lines.contains("sluice_cache_node_peers 2"));
  CHECK(lines.contains("sluice_cache_node_peer_hits_total " + std::to_string(seen.hits)));
  CHECK(lines.contains(R"(sluice_cache_node_forwarded_total{question="find"} )" + std::to_string(seen.finds)));
  CHECK(lines.contains(R"(sluice_cache_node_peer_errors_total{kind="gone"} 0)"));
}

TEST_CASE("a question goes to another daemon once, though that one takes a third for the record's home") {
  CacheCluster cluster(3);
  CachePod pod(cluster, 0);
  cluster.at(0).peers.set({CacheCluster::address_of(1)});
  cluster.at(1).peers.set({CacheCluster::address_of(2)});
  const auto goes_on = [&](int node, int record) {
    return cluster.at(node).peers.home_of(cache::of_tenant("team-a", key_of(record))) != nullptr;
  };
  int at_third = 0;
  while (!goes_on(0, at_third) || !goes_on(1, at_third)) ++at_third;
  CHECK(pod.fetches(at_third));
  CHECK_FALSE(pod.fetches(at_third));
  CHECK(cluster.at(1).peer_questions == 3);
  CHECK(cluster.at(2).peer_questions == 0);
  CHECK(cluster.at(1).node.counters->store.records == 1);
}

TEST_CASE("a namespace finds what its own pods have kept, on whatever node, and nothing else") {
  CacheCluster cluster(3);
  CachePod pod(cluster, 0), colleague(cluster, 2);
  for (int record = 0; record < kRecords; ++record) pod.fetches(record);
  for (int node = 0; node < 3; ++node) {
    CachePod stranger(cluster, node, "team-b");
    for (int record = 0; record < kRecords; ++record) {
      CHECK_FALSE(stranger.has(record));
      // As one that knows how daemons ask each other.
      const auto answer = cluster.at(node).ask("team-b", cache::kFindAtHomeMethod, encode_head(key_of(record), {}),
                                               std::chrono::seconds(30));
      REQUIRE(answer.ok());
      CHECK(answer->size() == cache::kAnswerBytes);
      CHECK(colleague.has(record));
    }
    CHECK(stranger.errors() == 0);
  }
}

TEST_CASE("a daemon that is gone, late, busy or of another version is left alone, and no pod leaves its own for it") {
  struct Case {
    const char* name;
    Error error;
    const cache::Count cache::Counters::*counter;
  };
  for (const Case& failure : {Case{"gone", unavailable("connection reset"), &cache::Counters::node_gone},
                              Case{"late", Error(ErrorCode::kDeadlineExceeded, "late"), &cache::Counters::node_late},
                              Case{"busy", Error(ErrorCode::kResourceExhausted, "busy"), &cache::Counters::node_busy},
                              Case{"of an earlier version", invalid_argument("what?"), &cache::Counters::node_wrong}}) {
    INFO(failure.name);
    CacheCluster cluster(3);
    CachePod pod(cluster, 0);
    const int there = cluster.number_at(1), elsewhere = cluster.number_at(2), here = cluster.number_at(0);
    for (const int record : {there, elsewhere, here}) CHECK(pod.fetches(record));
    CacheDaemon& failing = cluster.at(1);
    failing.fails_with = failure.error;
    failing.takes = Peers::kPatience;
    const int before = failing.peer_questions;
    Clock::Duration waited{0}, longest{0};
    for (int second = 0; second < 600; ++second) {
      const auto started = cluster.clock.now();
      CHECK(pod.fetches(there));
      const auto took = cluster.clock.now() - started;
      waited += took;
      longest = std::max(longest, took);
      CHECK_FALSE(pod.fetches(elsewhere));
      CHECK_FALSE(pod.fetches(here));
      cluster.clock.advance(std::chrono::seconds(1));
    }
    const int questions = failing.peer_questions - before;
    CHECK(questions == static_cast<int>(cluster.at(0).peers.counters().errors.*failure.counter));
    CHECK(questions > 15);
    CHECK(questions < 30);  // in the end every 30 s
    CHECK(longest < cache::NodeCacheClient::kPatience);
    CHECK(waited < std::chrono::seconds(5));
    CHECK(pod.errors() == 0);
    CHECK(pod.client.has_room_for(key_of(there), 10));
    failing.fails_with.reset();
    failing.takes = Clock::Duration{0};
    cluster.clock.advance(cache::Breaker::kBackOffMax);
    CHECK_FALSE(pod.fetches(there));
    CHECK(failing.longest_patience <= Peers::kPatience);
  }
}

TEST_CASE("a question that has waited is given less time at a peer, and in the end none") {
  CacheCluster cluster(1);
  const Peers& peers = cluster.at(0).peers;
  struct Case {
    std::chrono::milliseconds waited;
    std::chrono::milliseconds patience;
  };
  using std::chrono::milliseconds;
  for (const Case& each : {Case{milliseconds(0), milliseconds(150)}, Case{milliseconds(50), milliseconds(150)},
                           Case{milliseconds(120), milliseconds(80)}, Case{milliseconds(200), milliseconds(0)}}) {
    const auto came = peers.now();
    cluster.clock.advance(each.waited);
    CHECK(peers.patience_for(came) == each.patience);
  }
  CHECK(Peers::kAnswerWithin < cache::NodeCacheClient::kPatience);
}

TEST_CASE("whatever a daemon says in place of the record is a miss, and its pod's daemon counts it") {
  struct Case {
    const char* name;
    std::function<void(Bytes&)> on_its_way;
    bool is_answer;  // the rest of it is wrong
  };
  const std::size_t head = cache::kAnswerBytes + cache::kFixedHeadBytes;
  const std::vector<Case> cases = {
      {"nothing", [](Bytes& answer) { answer.clear(); }, false},
      {"a part of the first bytes", [](Bytes& answer) { answer.resize(cache::kAnswerBytes - 1); }, false},
      {"an unknown flag", [](Bytes& answer) { answer[4] |= 64; }, false},
      {"no record", [](Bytes& answer) { answer.resize(cache::kAnswerBytes); }, true},
      {"a part of the head", [&](Bytes& answer) { answer.resize(head + 3); }, true},
      {"a part of the value", [](Bytes& answer) { answer.pop_back(); }, true},
      {"more than the value", [](Bytes& answer) { answer.push_back(0); }, true},
      {"a wrong byte of the value", [](Bytes& answer) { answer.back() ^= 1; }, true},
      {"a wrong length", [](Bytes& answer) { answer[cache::kAnswerBytes + 12] ^= 1; }, true},
      {"a wrong key", [&](Bytes& answer) { answer[head] ^= 1; }, true},
      {"the record of another key",
       [](Bytes& answer) {
         const auto value = value_of(key_of(2000), kValueBytes);
         const auto record = encode_head(key_of(2000), value);
         answer.resize(cache::kAnswerBytes);
         answer.insert(answer.end(), record.begin(), record.end());
         answer.insert(answer.end(), value.begin(), value.end());
       },
       true},
  };
  for (const Case& wrong : cases) {
    INFO(wrong.name);
    CacheCluster cluster(2);
    CachePod pod(cluster, 0);
    const int record = cluster.number_at(1);
    CHECK(pod.fetches(record));
    CHECK(pod.has(record));
    cluster.at(1).on_its_way = wrong.on_its_way;
    CHECK_FALSE(pod.has(record));
    const cache::Counters& errors = cluster.at(0).peers.counters().errors;
    CHECK(errors.damaged == (wrong.is_answer ? 1 : 0));
    CHECK(errors.node_wrong == (wrong.is_answer ? 0 : 1));
    CHECK(pod.errors() == 0);
    cluster.at(1).on_its_way = nullptr;
    cluster.clock.advance(cache::Breaker::kBackOffMin);
    CHECK(pod.has(record));
  }
}

TEST_CASE("a daemon that comes takes its own part of the records, and the others are found as before") {
  CacheCluster cluster(3);
  CachePod pod(cluster, 0), other(cluster, 1);
  for (int record = 0; record < kRecords; ++record) pod.fetches(record);
  cluster.start(3);
  cluster.meet();
  std::uint64_t fetched = 0;
  int moved = 0;
  for (int record = 0; record < kRecords; ++record) {
    const bool is_moved = cluster.home_of(key_of(record)) == 3;
    moved += is_moved ? 1 : 0;
    // Where its former home was on the pod's own node, it is found there, and the other pod fetches it.
    const int times = (other.fetches(record) ? 1 : 0) + (pod.fetches(record) ? 1 : 0);
    CHECK(times <= (is_moved ? 1 : 0));
    fetched += times;
  }
  CHECK(moved > kRecords / 10);
  CHECK(moved < kRecords / 2);
  CHECK(fetched > 0);
  CHECK(cluster.at(3).node.counters->store.records == fetched);
  for (int record = 0; record < kRecords; ++record) CHECK_FALSE((other.fetches(record) || pod.fetches(record)));
}

TEST_CASE("a daemon that goes takes its part of the records with it, and is asked no more once that is known") {
  CacheCluster cluster(3);
  CachePod pod(cluster, 0), other(cluster, 1);
  for (int record = 0; record < kRecords; ++record) pod.fetches(record);
  const std::uint64_t lost = cluster.at(2).node.counters->store.records;
  const int gone = cluster.number_at(2);
  cluster.stop(2);
  CHECK(pod.fetches(gone));
  CHECK(cluster.at(0).peers.counters().errors.node_gone == 1);
  cluster.meet();
  std::uint64_t fetched = 0;
  for (int record = 0; record < kRecords; ++record) fetched += pod.fetches(record) ? 1 : 0;
  CHECK(fetched == lost);
  for (int record = 0; record < kRecords; ++record) CHECK_FALSE(other.fetches(record));
  CHECK(cluster.at(0).peers.counters().errors.node_gone == 1);
}

TEST_CASE("daemons of an earlier version and the later ones serve their pods side by side") {
  CacheCluster cluster(2);
  CacheDaemon& earlier = cluster.at(1);
  earlier.is_of_earlier_version = true;
  earlier.peers.set({});
  CachePod of_later(cluster, 0), of_earlier(cluster, 1);
  const int at_earlier = cluster.number_at(1), at_later = cluster.number_at(0);
  for (const int record : {at_earlier, at_later}) {
    CHECK(of_earlier.fetches(record));
    CHECK_FALSE(of_earlier.fetches(record));
    CHECK(of_later.fetches(record));
  }
  CHECK_FALSE(of_later.fetches(at_later));
  CHECK(of_later.fetches(at_earlier));
  CHECK(cluster.at(0).peers.counters().errors.node_wrong == 1);
  CHECK(of_later.errors() + of_earlier.errors() == 0);
}

TEST_CASE("pods of an earlier version, which tell no job, share records as the others do") {
  CacheCluster cluster(3);
  CachePod earlier(cluster, 0, "team-a", std::nullopt), later(cluster, 1);
  for (int record = 0; record < kRecords; ++record) {
    CHECK(earlier.fetches(record));
    CHECK_FALSE(later.fetches(record));
    CHECK_FALSE(earlier.fetches(record));
  }
  CHECK(cluster.records() == kRecords);
  CHECK(earlier.errors() == 0);
}

TEST_CASE("a token that another daemon does not take is its pod's matter alone") {
  CacheCluster cluster(2);
  cluster.at(1).refused_token = "team-b";
  CachePod bad(cluster, 0, "team-b"), good(cluster, 0);
  const int record = cluster.number_at(1);
  CHECK(good.fetches(record));
  int refused = 0;
  for (int other = 0; other < kRecords; ++other) {
    if (cluster.home_of(key_of(other), "team-b") == 1) ++refused;
    CHECK(bad.fetches(other));
    CHECK_FALSE(good.fetches(record));
  }
  CHECK(refused > 0);
  CHECK(cluster.at(0).peers.counters().errors.node_refused >= static_cast<std::uint64_t>(refused));
  CHECK(bad.errors() == 0);
}

TEST_CASE("the caches' room adds up, and what its home has no room for is not sent") {
  const cache::Limits large{.bytes = std::uint64_t{1} << 30};
  CacheCluster cluster(3, large);
  CachePod pod(cluster, 0);
  for (int record = 0; record < kRecords; ++record) pod.fetches(record);
  CHECK(pod.client.free_bytes() > 2.9 * large.bytes);
  CHECK(pod.client.free_bytes() <= 3 * large.bytes);

  CacheCluster full(3, {.bytes = 200'000, .records = 1 << 12, .segment_bytes = 20'000});
  CachePod reader(full, 0);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (int record = 0; record < 900; ++record) reader.fetches(record);
  CHECK(full.records() > 400);  // of the 570 that their bytes are
  CHECK(reader.client.free_bytes() == 0);
  std::uint64_t refused = 0;
  for (int node = 0; node < 3; ++node) refused += full.at(node).node.counters->store.not_stored_full;
  CHECK(refused < 20);
  CHECK(reader.counters.not_stored_full > 400);
}

TEST_CASE("a home whose disk refuses what is to be kept gets nothing more, and the others do") {
  CacheCluster cluster(2);
  CachePod pod(cluster, 0);
  const int first = cluster.number_at(1), second = cluster.number_at(1, first + 1), here = cluster.number_at(0);
  cluster.at(1).node.disk->refuses_writes = true;
  CHECK(pod.fetches(first));
  CHECK(pod.fetches(first));
  const auto keeps = cluster.at(0).peers.counters().keeps.load();
  CHECK(keeps == 1);
  CHECK(pod.fetches(second));
  CHECK(cluster.at(0).peers.counters().keeps == keeps);
  CHECK(pod.fetches(here));
  CHECK_FALSE(pod.fetches(here));
  cluster.at(1).node.disk->refuses_writes = false;
  cluster.clock.advance(cache::SegmentStore::kPauseAfterFailure);
  CHECK(pod.fetches(second));
  CHECK_FALSE(pod.fetches(second));
}

}  // namespace
}  // namespace sluice::node_cache
