// Daemons that share their records over TLS on the loopback network, with the pods' own tokens.
#include <filesystem>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"
#include "src/http/testing/certificates.h"
#include "src/transport/unary_server.h"
#include "worker-image/cache/peers.h"
#include "worker-image/cache/tenant_service.h"
#include "worker-image/testing/eventually.h"

namespace sluice::node_cache {
namespace {

using cache::testing::key_of;
using cache::testing::value_of;

constexpr std::size_t kNetworkBytes = 20'000;
constexpr int kNetworkRecords = 20;

struct NetworkNode {
  NetworkNode(const http::testing::CertificateAuthority& authority, const std::string& trusted) : disk_node(clock) {
    files.file("ca.crt", trusted);
    files.file("token", "team-a");
    disk_node.start({.bytes = 256 << 20, .records = 1 << 12});
    const auto leaf = authority.issue("sluice", std::string("DNS:") + cache::kNodeCacheServerName);
    const int port = free_port();
    address = "127.0.0.1:" + std::to_string(port);
    const std::string authority_file = (files.path / "ca.crt").string();
    peers = std::make_unique<Peers>(
        address,
        [authority_file](const std::string& other) {
          return transport::UnaryClient::create(
              transport::NetworkServer{other, cache::kNodeCacheServerName, authority_file, /*token_file=*/""},
              cache::kNodeMessageBytesMax);
        },
        clock);
    service = std::make_unique<NodeService>(*disk_node.cache, peers.get());
    pods = std::make_unique<TenantService>(*service, tokens);
    auto started = transport::UnaryServer::start_on_network(
        address, transport::TlsMaterial{authority.certificate_pem(), leaf.certificate_pem, leaf.key_pem},
        {.question_bytes = cache::kNodeMessageBytesMax}, *pods, server_counters);
    REQUIRE(started.ok());
    server = std::move(*started);
    pod = std::make_unique<cache::NodeCacheClient>(cache::line_to(address, files.path.string()), 1, clock, counters,
                                                   std::chrono::seconds(30));
  }
  // A moment ago it was free, and the system gives no other server the same one soon.
  int free_port() {
    const auto probe = transport::UnaryServer::start_on_network("127.0.0.1:0", {}, {}, no_one, server_counters);
    REQUIRE(probe.ok());
    return (*probe)->port();
  }
  bool has(int number) {
    std::vector<std::uint8_t> value;
    if (!pod->find(key_of(number), value)) return false;
    CHECK(value == value_of(key_of(number), kNetworkBytes));
    return true;
  }
  // The first question at a peer may be late, as it connects.
  bool has_in_the_end(int number) {
    return sluice::testing::eventually([&] {
      clock.advance(cache::Breaker::kBackOffMax);
      return has(number);
    });
  }
  std::uint64_t records() const { return disk_node.counters->store.records; }

  struct NoOne final : transport::UnaryHandler {
    void received(std::shared_ptr<transport::UnaryCall>, const std::string&, transport::Payload) override {}
  } no_one;
  const sluice::testing::TemporaryDirectory files;
  sluice::testing::ManualClock clock;
  cache::testing::Node disk_node;
  TenantTokens tokens{
      [](const std::string& token) -> Result<std::string> { return "system:serviceaccount:" + token + ":default"; },
      clock};
  transport::UnaryCounters server_counters;
  cache::Counters counters;
  std::string address;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<NodeService> service;
  std::unique_ptr<TenantService> pods;
  std::unique_ptr<transport::UnaryServer> server;
  std::unique_ptr<cache::NodeCacheClient> pod;
};

void meet(std::initializer_list<NetworkNode*> nodes) {
  std::set<std::string> all;
  for (const NetworkNode* node : nodes) all.insert(node->address);
  for (NetworkNode* node : nodes) node->peers->set(all);
}

TEST_CASE("over the network, what a pod of one node keeps at its home, a pod of the other node finds") {
  const http::testing::CertificateAuthority authority("node cache");
  NetworkNode first(authority, authority.certificate_pem()), second(authority, authority.certificate_pem());
  meet({&first, &second});
  for (int record = 0; record < kNetworkRecords; ++record) {
    CHECK(sluice::testing::eventually([&] {
      first.clock.advance(cache::Breaker::kBackOffMax);
      if (first.has(record)) return true;
      first.pod->add(key_of(record), value_of(key_of(record), kNetworkBytes));
      return false;
    }));
  }
  for (int record = 0; record < kNetworkRecords; ++record) CHECK(second.has_in_the_end(record));
  CHECK(first.records() + second.records() == kNetworkRecords);
  CHECK(second.records() > 0);
  CHECK(second.peers->counters().hits >= first.records());
  CHECK(first.peers->counters().errors.damaged + second.peers->counters().errors.damaged == 0);
  CHECK(first.counters.damaged + second.counters.damaged == 0);
  second.server.reset();
  int found = 0;
  for (int record = 0; record < kNetworkRecords; ++record) found += first.has(record) ? 1 : 0;
  CHECK(found == static_cast<int>(first.records()));
  CHECK(first.peers->counters().errors.node_gone + first.peers->counters().errors.node_late > 0);
}

TEST_CASE("a daemon of another authority gets neither the question nor the pod's token") {
  const http::testing::CertificateAuthority authority("node cache"), other("another one");
  NetworkNode first(authority, authority.certificate_pem()), stranger(other, authority.certificate_pem());
  meet({&first, &stranger});
  for (int record = 0; record < kNetworkRecords; ++record) CHECK_FALSE(first.has(record));
  CHECK(stranger.disk_node.counters->misses == 0);
  CHECK(first.peers->counters().errors.node_gone + first.peers->counters().errors.node_late > 0);
}

}  // namespace
}  // namespace sluice::node_cache
