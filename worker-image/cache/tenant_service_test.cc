// The node's cache as pods reach it: over TLS, by their namespaces' tokens.
#include "worker-image/cache/tenant_service.h"

#include <prometheus/registry.h>

#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"
#include "src/executor/testing/metrics_text.h"
#include "src/http/testing/certificates.h"
#include "src/transport/unary_client.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/testing/eventually.h"

namespace sluice::node_cache {
namespace {

using cache::testing::key_of;
using cache::testing::value_of;
using sluice::testing::eventually;

constexpr std::size_t kTenantBytes = 5000;
constexpr cache::JobId kJob = 7;  // every pod says so

struct TenantDaemon {
  TenantDaemon() { start("127.0.0.1:0"); }
  void start(const std::string& address) {
    auto started = transport::UnaryServer::start_on_network(
        address, transport::TlsMaterial{authority.certificate_pem(), leaf.certificate_pem, leaf.key_pem},
        {.connections = 4, .question_bytes = cache::kNodeMessageBytesMax}, service, server_counters);
    REQUIRE(started.ok());
    server = std::move(*started);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server->port()); }
  Result<std::string> review(const std::string& token) {
    ++reviews;
    if (token.starts_with("of:")) return "system:serviceaccount:" + token.substr(3) + ":default";
    if (token == "down") return unavailable("no connection");
    return Error(ErrorCode::kUnauthenticated, "none of ours");
  }

  const http::testing::CertificateAuthority authority{"node cache"};
  const http::testing::Identity leaf = authority.issue("sluice", std::string("DNS:") + cache::kNodeCacheServerName);
  sluice::testing::ManualClock clock;
  cache::testing::Node node{clock};
  std::atomic<int> reviews = 0;
  TenantTokens tokens{[this](const std::string& token) { return review(token); }, clock};
  NodeService node_service{*start_node()};
  TenantService service{node_service, tokens};
  transport::UnaryCounters server_counters;
  std::unique_ptr<transport::UnaryServer> server;

 private:
  cache::NodeCache* start_node() {
    node.start();
    return node.cache.get();
  }
};

// A pod's process: its mounted files, and the cache as it sees it.
struct Pod {
  Pod(const TenantDaemon& daemon, const std::string& token) : Pod(daemon, token, daemon.authority.certificate_pem()) {}
  Pod(const TenantDaemon& daemon, const std::string& token, const std::string& authority) : clock(daemon.clock) {
    files.file("ca.crt", authority);
    show(token);
    client = std::make_unique<cache::NodeCacheClient>(cache::line_to(daemon.address(), files.path.string()), kJob,
                                                      clock, counters, std::chrono::seconds(30));
  }
  void show(const std::string& token) {
    files.file("new", token + "\n");
    std::filesystem::rename(files.path / "new", files.path / "token");
  }
  bool has(int number) {
    std::vector<std::uint8_t> value;
    if (!client->find(key_of(number), value)) return false;
    CHECK(value == value_of(key_of(number), kTenantBytes));
    return true;
  }
  void add(int number) {
    CHECK_FALSE(has(number));
    client->add(key_of(number), value_of(key_of(number), kTenantBytes));
  }

  const sluice::testing::ManualClock& clock;
  const sluice::testing::TemporaryDirectory files;
  cache::Counters counters;
  std::unique_ptr<cache::NodeCacheClient> client;
};

TEST_CASE("pods of a namespace share what they keep, and those of another one find nothing of it") {
  TenantDaemon daemon;
  Pod first(daemon, "of:team-a"), second(daemon, "of:team-a"), stranger(daemon, "of:team-b");
  first.add(1);
  for (int time = 0; time < 3; ++time) {  // from the disk, then from memory
    CHECK(second.has(1));
    CHECK_FALSE(stranger.has(1));
  }
  CHECK(daemon.node.counters->memory.hits > 0);
  stranger.add(1);
  CHECK(stranger.has(1));
  CHECK(first.has(1));
  CHECK(daemon.reviews == 2);
  CHECK(first.counters.node_refused + stranger.counters.node_refused == 0);
  CHECK(daemon.service.refused() == 0);
}

TEST_CASE("a namespace that names itself as another one in its keys finds nothing of that one") {
  TenantDaemon daemon;
  Pod pod(daemon, "of:team-a"), thief(daemon, "of:team-b");
  pod.add(1);
  for (const std::string& prefix : {std::string("tenant team-a") + '\0', std::string("team-a") + '\0'}) {
    std::vector<std::uint8_t> value;
    CHECK_FALSE(thief.client->find({prefix + key_of(1).place, key_of(1).version}, value));
  }
  CHECK(thief.counters.node_refused == 0);
}

TEST_CASE("pods announce their epochs") {
  TenantDaemon daemon;
  Pod pod(daemon, "of:team-a"), unknown(daemon, "nonsense");
  pod.add(1);
  const std::vector<std::uint64_t> places = {1, 2, 3};
  pod.client->announce(places, {.seed = 1, .length = 3});
  CHECK(daemon.node.counters->announced_epochs == 1);
  unknown.client->announce(places, {.seed = 1, .length = 3});
  CHECK(daemon.node.counters->announced_epochs == 1);
}

TEST_CASE("without a token that the API server knows there is no answer, and it is counted at both ends") {
  TenantDaemon daemon;
  Pod good(daemon, "of:team-a"), bad(daemon, "nonsense");
  good.add(1);
  CHECK_FALSE(bad.has(1));
  CHECK(bad.counters.node_refused == 1);
  prometheus::Registry registry;
  program::ShownCounts shown = shown_counts(registry, *daemon.node.cache, *daemon.node.counters, daemon.node_service,
                                            daemon.server_counters, &daemon.service);
  shown.tick();
  CHECK(sluice::testing::metrics_lines(registry).contains(R"(sluice_cache_node_refused_total{reason="token"} 1)"));
  // The kubelet brings another one.
  bad.show("of:team-a");
  CHECK_FALSE(bad.has(1));  // within the back-off
  daemon.clock.advance(cache::Breaker::kBackOffMin);
  CHECK(bad.has(1));
  // The API server does not answer: known tokens are good.
  Pod late(daemon, "down");
  CHECK_FALSE(late.has(1));
  CHECK(late.counters.node_busy == 1);
  CHECK(good.has(1));
}

TEST_CASE("a daemon without the right certificate gets no token, and a process without files asks none") {
  TenantDaemon daemon;
  const http::testing::CertificateAuthority other("another one");
  Pod cautious(daemon, "of:team-a", other.certificate_pem());
  CHECK_FALSE(cautious.has(1));
  CHECK(cautious.counters.node_gone == 1);
  CHECK(daemon.reviews == 0);
  Pod early(daemon, "of:team-a");
  for (const char* file : {"token", "ca.crt"}) {
    INFO(file);
    std::filesystem::rename(early.files.path / file, early.files.path / "away");
    const auto before = early.counters.node_gone.load();
    CHECK_FALSE(early.has(1));
    CHECK(early.counters.node_gone == before + 1);
    std::filesystem::rename(early.files.path / "away", early.files.path / file);
    daemon.clock.advance(cache::Breaker::kBackOffMax);
  }
  early.show("two\nlines");
  CHECK_FALSE(early.has(1));
  early.show("of:team-a");
  daemon.clock.advance(cache::Breaker::kBackOffMax);
  early.add(1);
  CHECK(early.has(1));
}

TEST_CASE("a daemon that ends and is back is found again") {
  TenantDaemon daemon;
  Pod pod(daemon, "of:team-a");
  pod.add(1);
  const std::string address = "127.0.0.1:" + std::to_string(daemon.server->port());
  daemon.server.reset();
  CHECK_FALSE(pod.has(1));
  CHECK(pod.counters.node_gone == 1);
  daemon.start(address);
  daemon.clock.advance(cache::Breaker::kBackOffMin);
  CHECK(pod.has(1));
}

TEST_CASE("connections beyond their bound are refused, and room comes back with those that end") {
  TenantDaemon daemon;
  std::vector<std::unique_ptr<Pod>> pods;
  for (int i = 0; i < 4; ++i) {
    pods.push_back(std::make_unique<Pod>(daemon, "of:team-a"));
    CHECK_FALSE(pods.back()->has(1));
    CHECK(pods.back()->counters.node_gone == 0);
  }
  CHECK(daemon.server_counters.connections == 4);
  Pod late(daemon, "of:team-a");
  CHECK_FALSE(late.has(1));
  CHECK(late.counters.node_gone == 1);
  CHECK(daemon.server_counters.refused_connections > 0);
  pods.clear();
  REQUIRE(eventually([&] { return daemon.server_counters.connections == 0; }));
  daemon.clock.advance(cache::Breaker::kBackOffMax);
  late.add(1);
  CHECK(late.has(1));
}

TEST_CASE("an address that is none is refused") {
  TenantDaemon daemon;
  for (const char* address :
       {"", "7473", "localhost:7473", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "[::1:7473"}) {
    const auto server =
        transport::UnaryServer::start_on_network(address, {}, {}, daemon.service, daemon.server_counters);
    REQUIRE_FALSE(server.ok());
    CHECK(server.error().code() == ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sluice::node_cache
