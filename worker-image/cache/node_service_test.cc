// The node's cache behind its socket: what clients find there, and what it refuses.
#include "worker-image/cache/node_service.h"

#include <prometheus/registry.h>

#include <numeric>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"
#include "src/executor/testing/metrics_text.h"
#include "src/transport/unary_client.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/testing/eventually.h"

namespace sluice::node_cache {
namespace {

using cache::testing::key_of;
using cache::testing::value_of;

struct ServedNode {
  ServedNode() {
    node.start();
    service = std::make_unique<NodeService>(*node.cache);
    auto started =
        transport::UnaryServer::start(path, {.question_bytes = cache::kNodeMessageBytesMax}, *service, server_counters);
    REQUIRE(started.ok());
    server = std::move(*started);
  }

  sluice::testing::ManualClock clock;
  cache::testing::Node node{clock};
  const sluice::testing::TemporaryDirectory directory;
  const std::string path = (directory.path / "cache.sock").string();
  transport::UnaryCounters server_counters;
  std::unique_ptr<NodeService> service;
  std::unique_ptr<transport::UnaryServer> server;
  cache::Counters counters;
  cache::NodeCacheClient client{cache::line_to(path), 1, clock, counters, std::chrono::minutes(1)};
};

TEST_CASE("records of all sizes go to the node's cache and come back, from the disk and from memory") {
  ServedNode cache;
  std::vector<std::uint8_t> value;
  for (const std::size_t bytes : {0, 1, 1000, 100'000, 5'000'000}) {
    INFO(bytes);
    const cache::Key key = key_of(static_cast<int>(bytes));
    CHECK_FALSE(cache.client.find(key, value));
    cache.client.add(key, value_of(key, bytes));
    for (int time = 0; time < 3; ++time) {
      REQUIRE(cache.client.find(key, value));
      CHECK(value == value_of(key, bytes));
    }
  }
  CHECK(cache.node.counters->disk.hits == 5 + 2);  // the largest one does not fit into memory
  CHECK(cache.node.counters->memory.hits == 8);
  prometheus::Registry registry;
  program::ShownCounts shown =
      shown_counts(registry, *cache.node.cache, *cache.node.counters, *cache.service, cache.server_counters, nullptr);
  shown.tick();
  const std::set<std::string> lines = sluice::testing::metrics_lines(registry);
  CHECK(lines.contains(R"(sluice_cache_node_hits_total{tier="memory"} 8)"));
  CHECK(lines.contains(R"(sluice_cache_node_hits_total{tier="disk"} 7)"));
  CHECK(lines.contains("sluice_cache_node_misses_total 5"));
  CHECK(lines.contains(R"(sluice_cache_node_records{tier="disk"} 5)"));
  CHECK(lines.contains("sluice_cache_node_connections 1"));
}

TEST_CASE("an epoch of a data set of any size is announced over the socket") {
  ServedNode cache;
  for (const std::size_t samples : {1, 1000, 60'000}) {
    std::vector<std::uint64_t> places(samples);
    std::iota(places.begin(), places.end(), samples);
    cache.client.announce(places, {.seed = 1, .length = samples});
    cache.client.announce(places, {.seed = 2, .length = samples});
  }
  CHECK(cache.node.counters->announced_epochs == 6);
}

TEST_CASE("bytes are allowed up to their bound, and come back with what they were allowed for") {
  auto allowance = std::make_unique<ByteAllowance>(100);
  CHECK(allowance->take(101) == nullptr);
  auto most = allowance->take(90);
  REQUIRE(most != nullptr);
  CHECK(allowance->take(11) == nullptr);
  const auto rest = allowance->take(10);
  CHECK(rest != nullptr);
  auto copy = most;
  most = nullptr;
  CHECK(allowance->take(90) == nullptr);
  copy = nullptr;
  copy = allowance->take(90);
  CHECK(copy != nullptr);
  allowance.reset();  // before what it has allowed
}

TEST_CASE("a message that is no question, or of no known method, gets no answer and does no harm") {
  ServedNode cache;
  const auto stranger = transport::UnaryClient::create(cache.path, 1000);
  const std::vector<std::uint8_t> nonsense(100, 7);
  for (const char* method :
       {cache::kFindMethod, cache::kKeepMethod, cache::kAnnounceMethod, "/sluice.v1.NodeCache/Drop"}) {
    const auto answer = stranger->ask(method, nonsense, {}, std::chrono::seconds(30));
    REQUIRE_FALSE(answer.ok());
    CHECK(answer.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK(cache.node.counters->refused_messages == 3);
  std::vector<std::uint8_t> value;
  CHECK_FALSE(cache.client.find(key_of(1), value));
  CHECK(cache.counters.node_wrong == 0);
}

TEST_CASE("more questions than may wait for the disk are refused, and those that wait are answered") {
  ServedNode cache;
  const cache::Key key = key_of(1);
  std::vector<std::uint8_t> value;
  CHECK_FALSE(cache.client.find(key, value));
  cache.client.add(key, value_of(key, 100));
  std::unique_lock hanging(cache.node.disk->mutex);  // the disk does not answer
  constexpr std::size_t kTaken = NodeService::kThreads + NodeService::kQueueMax;
  constexpr std::size_t kRefused = 10;
  const auto line = cache::line_to(cache.path);
  std::atomic<std::size_t> found = 0, refused = 0;
  std::vector<std::jthread> askers;
  for (std::size_t i = 0; i < kTaken + kRefused; ++i) {
    askers.emplace_back([&] {
      std::vector<std::uint8_t> answer(cache::kAnswerBytes), rest;
      const auto got = line->ask(cache::NodeCacheLine::Wish::kFind, encode_head(key, {}), {}, std::chrono::seconds(60),
                                 answer, rest);
      if (got.ok() && cache::decode_answer(answer)->is_found) ++found;
      if (!got.ok() && got.error().code() == ErrorCode::kResourceExhausted) ++refused;
    });
  }
  CHECK(sluice::testing::eventually([&] { return refused == kRefused; }));
  CHECK(cache.service->refused() == kRefused);
  CHECK(found == 0);
  hanging.unlock();
  askers.clear();
  CHECK(found == kTaken);
}

}  // namespace
}  // namespace sluice::node_cache
