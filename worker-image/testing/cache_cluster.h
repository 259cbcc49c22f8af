// The caches of several nodes in this process, which ask each other over lines that fail as told, and the nodes' pods.
#pragma once

#include <array>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/tenant.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"
#include "worker-image/cache/peers.h"
#include "worker-image/cache/tenant_service.h"

namespace sluice::node_cache::testing {

using cache::testing::Bytes;
using cache::testing::key_of;
using cache::testing::value_of;

inline constexpr std::size_t kValueBytes = 1000;

class CalledInMemory final : public transport::UnaryCall {
 public:
  explicit CalledInMemory(std::string token) : token_(std::move(token)) {}
  ~CalledInMemory() override { end(internal_error("there was no answer")); }
  std::string token() const override { return token_; }
  void answer(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
              std::shared_ptr<const void> /*owner*/) override {
    Bytes bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    end(std::move(bytes));
  }
  void refuse(const Error& error) override { end(error); }
  std::future<Result<Bytes>> answered() { return promise_.get_future(); }

 private:
  void end(Result<Bytes> result) {
    if (!std::exchange(has_ended_, true)) promise_.set_value(std::move(result));
  }
  const std::string token_;
  std::promise<Result<Bytes>> promise_;
  bool has_ended_ = false;
};

struct CacheCluster;

// The daemon of a node.
struct CacheDaemon {
  CacheDaemon(CacheCluster& cluster, const std::string& address, const cache::Limits& limits);

  Result<Bytes> ask(const std::string& token, const std::string& method, const Bytes& message,
                    std::chrono::nanoseconds patience);

  cache::testing::Node node;
  Peers peers;
  TenantTokens tokens;
  std::unique_ptr<NodeService> service;
  std::unique_ptr<TenantService> pods;

  // What happens to other daemons' questions on their way.
  std::optional<Error> fails_with;
  Clock::Duration takes{0};
  std::function<void(Bytes& answer)> on_its_way;
  bool is_of_earlier_version = false;  // and knows no peers
  std::string refused_token;
  std::atomic<int> peer_questions = 0;
  std::atomic<int> peer_announcements = 0;
  std::chrono::nanoseconds longest_patience{0};
};

struct CacheCluster {
  explicit CacheCluster(int nodes, const cache::Limits& each = {.bytes = 256 << 20, .records = 1 << 12},
                        std::uint64_t memory = 1 << 20)
      : limits(each), memory_bytes(memory) {
    for (int node = 0; node < nodes; ++node) start(node);
    meet();
  }
  // Those that still ask each other find none.
  ~CacheCluster() {
    std::map<std::string, std::shared_ptr<CacheDaemon>> going;  // behind the lock
    std::lock_guard lock(mutex);
    going.swap(daemons);
  }
  static std::string address_of(int node) { return "10.0.0." + std::to_string(node) + ":7473"; }
  void start(int node) { replace(node, std::make_shared<CacheDaemon>(*this, address_of(node), limits)); }
  void stop(int node) { replace(node, nullptr); }
  CacheDaemon& at(int node) { return *daemons.at(address_of(node)); }
  std::set<std::string> addresses() const {
    std::set<std::string> all;
    for (const auto& [address, daemon] : daemons) all.insert(address);
    return all;
  }
  // One that is being asked by another one goes when it has answered. Null: there is none.
  std::shared_ptr<CacheDaemon> daemon_at(const std::string& address) {
    std::lock_guard lock(mutex);
    const auto found = daemons.find(address);
    return found == daemons.end() ? nullptr : found->second;
  }
  // All find each other.
  void meet() {
    for (const auto& [address, daemon] : daemons) daemon->peers.set(addresses());
  }
  // The node whose daemon has the record.
  int home_of(const cache::Key& key, const std::string& tenant = "team-a") const {
    const cache::Homes homes("none", addresses());
    const auto place = cache::hash_of(cache::of_tenant(tenant, key).place);
    for (int node = 0;; ++node)
      if (cache::Homes(address_of(node), addresses()).elsewhere(place) == nullptr) return node;
  }
  // Of a key with its home there.
  int number_at(int node, int from = 0) const {
    while (home_of(key_of(from)) != node) ++from;
    return from;
  }
  std::uint64_t records() const {
    std::uint64_t count = 0;
    for (const auto& [address, daemon] : daemons) count += daemon->node.counters->store.records;
    return count;
  }

  sluice::testing::ManualClock clock;
  const cache::Limits limits;  // of each daemon
  const std::uint64_t memory_bytes;
  std::mutex mutex;                                             // of changes of what follows
  std::map<std::string, std::shared_ptr<CacheDaemon>> daemons;  // by address

 private:
  void replace(int node, std::shared_ptr<CacheDaemon> daemon) {
    std::lock_guard lock(mutex);
    auto& there = daemons[address_of(node)];
    there.swap(daemon);
    if (there == nullptr) daemons.erase(address_of(node));
  }
};

// The way to a daemon from another one, or from a pod of its node.
class LineInMemory final : public transport::UnaryClient {
 public:
  LineInMemory(CacheCluster& cluster, std::string address, std::string token = "")
      : cluster_(cluster), address_(std::move(address)), token_(std::move(token)) {}

  Result<transport::Payload> ask_as(const std::string& token, const std::string& method,
                                    std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                                    std::chrono::nanoseconds patience) override {
    const auto daemon = cluster_.daemon_at(address_);
    if (daemon == nullptr) return unavailable("no daemon is there");
    Bytes message(head.begin(), head.end());
    message.insert(message.end(), body.begin(), body.end());
    SLUICE_TRY(Bytes answer, daemon->ask(token.empty() ? token_ : token, method, message, patience));
    const auto owner = std::make_shared<const Bytes>(std::move(answer));
    return transport::Payload({std::span(*owner)}, owner);
  }

 private:
  CacheCluster& cluster_;
  const std::string address_;
  const std::string token_;
};

inline CacheDaemon::CacheDaemon(CacheCluster& cluster, const std::string& address, const cache::Limits& limits)
    : node(cluster.clock),
      peers(
          address, [&cluster](const std::string& other) { return std::make_unique<LineInMemory>(cluster, other); },
          cluster.clock),
      tokens(
          [this](const std::string& token) -> Result<std::string> {
            if (token == refused_token) return Error(ErrorCode::kUnauthenticated, "none of ours");
            return "system:serviceaccount:" + token + ":default";
          },
          cluster.clock) {
  node.start(limits);
  node.cache = std::make_unique<cache::NodeCache>(cluster.memory_bytes, *node.counters, /*tells_room=*/true);
  node.disk = std::make_shared<cache::testing::DiskContent>();
  REQUIRE(
      node.cache
          ->open(cache::shared_disk_on(std::make_unique<cache::testing::MemoryDisk>(node.disk), limits, cluster.clock),
                 {})
          .ok());
  service = std::make_unique<NodeService>(*node.cache, &peers);
  pods = std::make_unique<TenantService>(*service, tokens);
}

inline Result<Bytes> CacheDaemon::ask(const std::string& token, const std::string& method, const Bytes& message,
                                      std::chrono::nanoseconds patience) {
  const bool is_announced = method == cache::kAnnounceAtHomeMethod;
  const bool is_of_peer = is_announced || method == cache::kFindAtHomeMethod || method == cache::kKeepAtHomeMethod;
  if (is_of_peer) {
    ++(is_announced ? peer_announcements : peer_questions);
    if (!is_announced) longest_patience = std::max(longest_patience, patience);
    node.clock.advance(takes);
    if (fails_with) return *fails_with;
    if (is_of_earlier_version) return invalid_argument("no such question");
  }
  const auto bytes = std::make_shared<const Bytes>(message);
  auto call = std::make_shared<CalledInMemory>(token);
  auto answered = call->answered();
  pods->received(std::move(call), method, transport::Payload({std::span(*bytes)}, bytes));
  Result<Bytes> answer = answered.get();
  if (answer.ok() && is_of_peer && on_its_way) on_its_way(*answer);
  return answer;
}

// A pod of a node, as it sees its cache.
struct CachePod {
  CachePod(CacheCluster& cluster, int node, const std::string& tenant = "team-a",
           std::optional<cache::JobId> job = cache::JobId{1})
      : client(cache::line_over(std::make_unique<LineInMemory>(cluster, CacheCluster::address_of(node), tenant)), job,
               cluster.clock, counters) {}

  bool has(int number) {
    Bytes value;
    if (!client.find(key_of(number), value)) return false;
    CHECK(value == value_of(key_of(number), kValueBytes));
    return true;
  }
  // As its users do; whether it was read from its source.
  bool fetches(int number) {
    if (has(number)) return false;
    client.add(key_of(number), value_of(key_of(number), kValueBytes));
    return true;
  }
  std::uint64_t errors() const {
    return counters.damaged + counters.node_gone + counters.node_late + counters.node_busy + counters.node_wrong +
           counters.node_refused;
  }

  cache::Counters counters;
  cache::NodeCacheClient client;
};

}  // namespace sluice::node_cache::testing
