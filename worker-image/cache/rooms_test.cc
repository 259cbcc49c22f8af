// Rooms of a node's cache, as pods of several namespaces find them.
#include "worker-image/cache/rooms.h"

#include <prometheus/registry.h>

#include "src/base/job_number.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/executor/testing/metrics_text.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/testing/cache_cluster.h"

namespace sluice::node_cache {
namespace {

using cache::testing::Bytes;
using cache::testing::key_of;
using cache::testing::value_of;

constexpr std::size_t kRecordBytes = 50'000;

class DividedCache {
 public:
  // `connect`: to the other nodes' caches; null: it is alone.
  explicit DividedCache(const std::string& rooms, std::uint64_t bytes = 10'000'000, const std::string& own = "",
                        const Peers::Connect& connect = nullptr)
      : rooms_(
            *parse_rooms(rooms), 1 << 20,
            connect == nullptr ? Rooms::MakePeers() : [&] { return std::make_unique<Peers>(own, connect, clock); }) {
    const std::string directory = (directory_.path / "segments").string();
    for (const auto& room : rooms_.all())
      REQUIRE(room->cache.open(Rooms::disk_of(room->plan, directory, bytes, clock), {}).ok());
  }
  Rooms& rooms() { return rooms_; }
  TenantService& pods() { return pods_; }

  sluice::testing::ManualClock clock;

 private:
  const sluice::testing::TemporaryDirectory directory_;
  Rooms rooms_;
  TenantTokens tokens_{
      [](const std::string& token) -> Result<std::string> { return "system:serviceaccount:" + token + ":default"; },
      clock};
  TenantService pods_{[this](const std::string& name_space) { return rooms_.place_of(name_space); }, tokens_};
};

// The way of a pod, whose token is its namespace, and of other nodes' caches, which ask with a pod's token.
class WayOfPod final : public transport::UnaryClient {
 public:
  explicit WayOfPod(DividedCache& cache, std::string name_space = "")
      : cache_(cache), name_space_(std::move(name_space)) {}

  Result<transport::Payload> ask_as(const std::string& token, const std::string& method,
                                    std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                                    std::chrono::nanoseconds /*patience*/) override {
    const auto message = std::make_shared<Bytes>(head.begin(), head.end());
    message->insert(message->end(), body.begin(), body.end());
    auto call = std::make_shared<testing::CalledInMemory>(token.empty() ? name_space_ : token);
    auto answered = call->answered();
    cache_.pods().received(std::move(call), method, transport::Payload({std::span(*message)}, message));
    SLUICE_TRY(Bytes answer, answered.get());
    const auto owner = std::make_shared<const Bytes>(std::move(answer));
    return transport::Payload({std::span(*owner)}, owner);
  }

 private:
  DividedCache& cache_;
  const std::string name_space_;
};

struct PodOfRoom {
  PodOfRoom(DividedCache& cache, const std::string& name_space)
      : client(cache::line_over(std::make_unique<WayOfPod>(cache, name_space)), 1, cache.clock, counters) {}

  bool has(int number) {
    Bytes value;
    if (!client.find(key_of(number), value)) return false;
    CHECK(value == value_of(key_of(number), kRecordBytes));
    return true;
  }
  void add(int number) {
    static_cast<void>(has(number));
    client.add(key_of(number), value_of(key_of(number), kRecordBytes));
  }
  int count(int numbers) {
    int found = 0;
    for (int number = 0; number < numbers; ++number) found += has(number) ? 1 : 0;
    return found;
  }

  cache::Counters counters;
  cache::NodeCacheClient client;
};

TEST_CASE("namespaces find each other's records in a shared room alone") {
  DividedCache cache("vision:40:team-a,team-b:shared;audio:10:team-c,team-d");
  const char* const namespaces[] = {"team-a", "team-b", "team-c", "team-d", "team-e", "+vision"};
  const auto who_finds_what = [&](const char* keeper) {
    PodOfRoom(cache, keeper).add(1);
    std::string found;
    for (const char* name_space : namespaces)
      if (PodOfRoom(cache, name_space).has(1)) found += std::string(found.empty() ? "" : " ") + name_space;
    return found;
  };
  CHECK(who_finds_what("team-b") == "team-a team-b");
  CHECK(who_finds_what("team-c") == "team-a team-b team-c");
  CHECK(who_finds_what("team-e") == "team-a team-b team-c team-e");
}

TEST_CASE("a namespace that fills its room leaves the others theirs") {
  constexpr int kMany = 400;  // twice what all rooms hold
  DividedCache cache("vision:30:team-a;audio:20:team-b");
  const std::map<std::string, int> least{{"team-a", 50}, {"team-b", 30}, {"team-c", 85}};
  for (const auto& [name_space, records] : least) {
    PodOfRoom pod(cache, name_space);
    for (int number = 0; number < kMany; ++number) pod.add(number);
  }
  for (const auto& [name_space, records] : least) {
    INFO(name_space);
    const int found = PodOfRoom(cache, name_space).count(kMany);
    CHECK(found >= records);
    CHECK(found * kRecordBytes <= 5'000'000);
  }
  std::uint64_t bytes = 0;
  for (const auto& room : cache.rooms().all()) {
    CHECK(room->counters.store.bytes_on_disk <= room->plan.part_of(10'000'000));
    bytes += room->counters.store.bytes_on_disk;
  }
  CHECK(bytes <= 10'000'000);
}

TEST_CASE("nodes share the records of each room, and a room that is full says nothing of the others") {
  std::map<std::string, std::unique_ptr<DividedCache>> nodes;
  const auto connect = [&](const std::string& address) { return std::make_shared<WayOfPod>(*nodes.at(address)); };
  const std::set<std::string> addresses{"10.0.0.1:1", "10.0.0.2:1"};
  for (const std::string& address : addresses)
    nodes[address] = std::make_unique<DividedCache>("vision:40:team-a,team-b:shared;audio:1:team-c", 1'000'000'000,
                                                    address, connect);
  for (const auto& [address, node] : nodes) node->rooms().set_peers(addresses);
  DividedCache &first = *nodes.begin()->second, &second = *nodes.rbegin()->second;
  constexpr int kRecords = 30;
  PodOfRoom keeper(first, "team-a"), colleague(second, "team-b"), stranger(second, "team-c");
  for (int number = 0; number < kRecords; ++number) keeper.add(number);
  CHECK(colleague.count(kRecords) == kRecords);
  CHECK(stranger.count(kRecords) == 0);
  PodOfRoom filler(first, "team-c");
  for (int number = 0; number < kRecords; ++number) filler.add(number);
  CHECK(filler.count(kRecords) == kRecords);
  CHECK(filler.client.free_bytes() == 0);  // too little for the largest record
  CHECK_FALSE(keeper.has(kRecords));
  CHECK(keeper.client.free_bytes() > 700'000'000);
  CHECK(colleague.count(kRecords) == kRecords);
}

TEST_CASE("what all rooms have on its way has one bound") {
  const Allowances all;
  const Allowances copy = all;
  const auto most = all.answers.take(Allowances::kBytesMax);
  REQUIRE(most != nullptr);
  CHECK(copy.answers.take(1) == nullptr);
  CHECK(copy.questions.take(1) != nullptr);
}

TEST_CASE("a pod speaks for jobs of its own namespace alone, also where another one shares its records") {
  DividedCache cache("vision:40:team-a,team-b:shared");
  PodOfRoom own(cache, "team-a"), other(cache, "team-b");  // both say the same number
  own.add(1);
  CHECK(other.has(1));
  std::set<std::uint64_t> jobs;
  for (const auto& kept : cache.rooms().all().back()->cache.kept_for_jobs()) jobs.insert(kept.job);
  CHECK(jobs == std::set{number_of("team-a", 1), number_of("team-b", 1)});
}

TEST_CASE("each room's figures have its name, and those of the default room have none") {
  DividedCache cache("vision:40:team-a");
  PodOfRoom(cache, "team-a").add(1);
  prometheus::Registry registry;
  std::vector<program::ShownCounts> shown;
  for (const auto& room : cache.rooms().all())
    shown.push_back(room_counts(registry, room->cache, room->counters, room->service, nullptr, room->plan.name));
  for (program::ShownCounts& counts : shown) counts.tick();
  const std::set<std::string> lines = sluice::testing::metrics_lines(registry);
  CHECK(lines.contains(R"(sluice_cache_node_records{room="vision",tier="disk"} 1)"));
  CHECK(lines.contains(R"(sluice_cache_node_records{tier="disk"} 0)"));
}

}  // namespace
}  // namespace sluice::node_cache
