// sluice-cache: its flags and the order in which things start and stop.
#include <prometheus/registry.h>

#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "src/base/logging.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/shared_disk.h"
#include "src/kube/client.h"
#include "src/kube/config.h"
#include "worker-image/cache/kept_gauges.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/cache/node_service.h"
#include "worker-image/cache/peers.h"
#include "worker-image/cache/rooms.h"
#include "worker-image/cache/tenant_service.h"
#include "worker-image/program/discovery.h"
#include "worker-image/program/program.h"

namespace sluice::node_cache {
namespace {

std::vector<Flag> known_flags() {
  return {
      {"socket", "PATH", "/run/sluice/cache.sock", "Unix socket that feeders and workers connect to; none: none"},
      {"listen", "IP:PORT", "none", "where pods of the cluster connect, each for its namespace; none: nowhere"},
      {"peers", "HOST:PORT", "none",
       "with --listen: name of the headless Service of the caches that share their records"},
      {"own-address", "IP", "", "with --peers: this one's, as that Service names it"},
      {"tls-dir", "DIR", "", "with --listen: ca.crt, tls.crt and tls.key"},
      {"directory", "DIR", "", "where the records are kept; it is made if it is missing"},
      {"bytes", "N", "", "of all its files on disk"},
      {"memory-bytes", "N", "0", "memory for records that are asked for again"},
      {"node-name", "NAME", "", "of the machine; with it the metrics tell what is kept for each job"},
      {"rooms", "ROOMS", "",
       "with --listen: parts of both, NAME:PERCENT:NAMESPACE,NAMESPACE or ...:shared, with ';' between them"},
      program::kPageFlags[0],
      program::kPageFlags[1],
  };
}
constexpr const char* kUsage = "sluice-cache --socket PATH --directory DIR --bytes N [flags]";
constexpr int kTickMilliseconds = 1000;
constexpr int kTicksOfKept = 10;  // looking through the records takes milliseconds
constexpr std::string_view kNone = "none";
constexpr transport::UnaryLimits kUserLimits{.question_bytes = cache::kNodeMessageBytesMax};
// A node has more pods than a user has programs.
constexpr transport::UnaryLimits kPodLimits{
    .connections = 512, .calls = 256, .question_bytes = cache::kNodeMessageBytesMax};
constexpr std::chrono::seconds kReviewTimeout{2};
constexpr std::chrono::seconds kLookUpInterval{10};

struct Settings {
  Flags flags;
  std::uint64_t bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<RoomPlan> rooms;
};

Result<Settings> read_settings(int argc, char** argv) {
  SLUICE_TRY(Flags flags, Flags::parse(known_flags(), argc, argv));
  if (!flags.positional().empty()) return invalid_argument("unexpected word '" + flags.positional().front() + "'");
  if (flags.text("directory").empty()) return invalid_argument("--directory is missing");
  if (flags.text("bytes").empty()) return invalid_argument("--bytes is missing");
  SLUICE_TRY(const std::int64_t bytes, flags.integer("bytes"));
  SLUICE_TRY(const std::int64_t memory_bytes, flags.integer("memory-bytes"));
  if (bytes <= 0) return invalid_argument("--bytes: must be more than 0");
  if (flags.text("socket") == kNone && flags.text("listen") == kNone)
    return invalid_argument("--socket and --listen are both none: nothing could connect");
  if (memory_bytes < 0) return invalid_argument("--memory-bytes: must not be negative");
  auto rooms = parse_rooms(flags.text("rooms"));
  if (!rooms.ok()) return rooms.error().with_context("--rooms");
  if (rooms->size() > 1 && flags.text("listen") == kNone)
    return invalid_argument("--rooms: say --listen, as only there each process has a namespace");
  return Settings{std::move(flags), static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(memory_bytes),
                  *std::move(rooms)};
}

// Opens the disks of all rooms beside the rest, one after another: the heads of all records are read.
class Opening {
 public:
  Opening(const Rooms& rooms, std::string directory, std::uint64_t bytes, const Clock& clock)
      : thread_([this, &rooms, directory = std::move(directory), bytes, &clock](const std::stop_token& stop) {
          for (const auto& room : rooms.all()) {
            outcome_ = room->cache.open(Rooms::disk_of(room->plan, directory, bytes, clock), stop);
            if (!outcome_.ok()) break;
          }
          is_done_ = true;
        }) {}

  // None: it is not done.
  std::optional<Result<void>> outcome() const { return is_done_ ? std::optional(outcome_) : std::nullopt; }

 private:
  Result<void> outcome_;
  std::atomic<bool> is_done_ = false;
  std::jthread thread_;  // last: it uses the rest
};

// The API server says whose a token is, from within the cluster.
Result<TenantTokens::Review> review_in_cluster(const Clock& clock) {
  SLUICE_TRY(const auto connection, kube::read_in_cluster(clock));
  SLUICE_TRY(auto transport, kube::open_transport(connection));
  const auto client = std::make_shared<const kube::Client>(
      std::move(transport), clock,
      kube::ClientOptions{.timeout = kReviewTimeout, .max_retries = 0, .user_agent = "sluice-cache"});
  return TenantTokens::Review(
      [client](const std::string& token) { return client->review_token(token, kTokenAudience); });
}

// The caches of other nodes, whose addresses are looked up again and again. All rooms share one connection to each.
struct OtherNodes {
  std::unique_ptr<program::Discovery> discovery;
  Rooms::MakePeers make_peers;  // null: records are not shared with any

  void tick(const Rooms& rooms) const {
    if (discovery != nullptr) rooms.set_peers(discovery->addresses());
  }
};

Peers::Connect connect_to_others(const std::string& authority) {
  using Known = std::map<std::string, std::weak_ptr<transport::UnaryClient>>;
  return [authority, known = std::make_shared<Known>()](const std::string& address) {
    std::erase_if(*known, [](const auto& client) { return client.second.expired(); });
    std::shared_ptr<transport::UnaryClient> client = (*known)[address].lock();
    if (client == nullptr)
      client = transport::UnaryClient::create(
          transport::NetworkServer{address, cache::kNodeCacheServerName, authority, /*token_file=*/""},
          cache::kNodeMessageBytesMax);
    (*known)[address] = client;
    return client;
  };
}

Result<OtherNodes> find_other_nodes(const Flags& flags, const Clock& clock) {
  OtherNodes others;
  if (flags.text("peers") == kNone) return others;
  if (flags.text("listen") == kNone) return invalid_argument("--peers: say --listen, as the others ask, too");
  const auto name = parse_host_port(flags.text("peers"));
  if (!name.ok()) return name.error().with_context("--peers");
  SLUICE_TRY(const program::Addresses own, program::resolve_addresses({flags.text("own-address"), name->port}));
  if (own.size() != 1) return invalid_argument("--own-address: '" + flags.text("own-address") + "' is no IP");
  const auto connect = connect_to_others(flags.text("tls-dir") + "/ca.crt");
  others.make_peers = [own = *own.begin(), connect, &clock] { return std::make_unique<Peers>(own, connect, clock); };
  others.discovery = std::make_unique<program::Discovery>(*name, kLookUpInterval, program::resolve_addresses);
  return others;
}

// The way of pods to the cache.
struct Network {
  std::unique_ptr<TenantTokens> tokens;
  std::unique_ptr<TenantService> service;
  std::unique_ptr<transport::UnaryServer> server;
};

Result<Network> serve_pods(const Flags& flags, const Clock& clock, const Rooms& rooms,
                           transport::UnaryCounters& counters) {
  if (flags.text("tls-dir").empty()) return invalid_argument("--listen: say --tls-dir, as pods connect over TLS alone");
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), false));
  SLUICE_TRY(auto review, review_in_cluster(clock));
  Network network;
  network.tokens = std::make_unique<TenantTokens>(std::move(review), clock);
  network.service = std::make_unique<TenantService>(
      [&rooms](const std::string& name_space) { return rooms.place_of(name_space); }, *network.tokens);
  SLUICE_TRY(network.server, transport::UnaryServer::start_on_network(flags.text("listen"), credentials, kPodLimits,
                                                                      *network.service, counters));
  return network;
}

class Shown {
 public:
  void add(program::ShownCounts counts) { counts_.push_back(std::move(counts)); }
  void add(std::unique_ptr<KeptGauges> kept) { kept_.push_back(std::move(kept)); }
  void tick() {
    for (program::ShownCounts& counts : counts_) counts.tick();
    if (ticks_++ % kTicksOfKept == 0)
      for (const auto& kept : kept_) kept->tick();
  }

 private:
  std::vector<program::ShownCounts> counts_;
  std::vector<std::unique_ptr<KeptGauges>> kept_;
  int ticks_ = 0;
};

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  const SystemClock clock;
  const auto registry = std::make_shared<prometheus::Registry>();
  SLUICE_TRY(const OtherNodes others, find_other_nodes(flags, clock));
  const Rooms rooms(settings.rooms, settings.memory_bytes, others.make_peers);
  Room& room = rooms.default_room();
  transport::UnaryCounters server_counters;
  Network network;
  if (flags.text("listen") != kNone) {
    SLUICE_TRY(network, serve_pods(flags, clock, rooms, server_counters));
  }
  Shown shown;
  shown.add(shown_counts(*registry, room.cache, room.counters, room.service, server_counters, network.service.get(),
                         room.peers.get()));
  for (const auto& other : rooms.all()) {
    if (other.get() != &room)
      shown.add(
          room_counts(*registry, other->cache, other->counters, other->service, other->peers.get(), other->plan.name));
    if (const std::string node = flags.text("node-name"); !node.empty())
      shown.add(std::make_unique<KeptGauges>(*registry, other->cache, node, other->plan.name));
  }
  SLUICE_TRY(const auto pages,
             program::serve_pages(flags, registry, [&rooms] { return rooms.are_open() ? "" : "opening"; }));
  std::unique_ptr<transport::UnaryServer> server;
  if (flags.text("socket") != kNone) {
    SLUICE_TRY(server, transport::UnaryServer::start(flags.text("socket"), kUserLimits, room.service, server_counters));
  }
  const Opening opening(rooms, flags.text("directory"), settings.bytes, clock);
  log_info("cache", "listens",
           {{"socket", flags.text("socket")},
            {"listen", flags.text("listen")},
            {"metrics_port", pages.metrics_port()},
            {"probes_port", pages.probes_port()},
            {"bytes_max", settings.bytes},
            {"memory_bytes_max", settings.memory_bytes},
            {"rooms", settings.rooms.size()}});
  int signal = 0;
  while (signal == 0) {
    signal = program::wait_for_signal(signals, kTickMilliseconds);
    if (const auto outcome = opening.outcome(); outcome && !outcome->ok()) return outcome->error();
    others.tick(rooms);
    shown.tick();
  }
  log_info("cache", "ending on a signal", {{"signal", signal}});
  return {};
}

}  // namespace
}  // namespace sluice::node_cache

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(Flags::help(node_cache::known_flags(), node_cache::kUsage).c_str(), stdout);
    return 0;
  }
  const int signals = program::block_signals();
  const auto settings = node_cache::read_settings(argc, argv);
  if (!settings.ok()) return program::exit_status("cache", settings.error(), program::kWrongUsage);
  return program::exit_status("cache", node_cache::run(*settings, signals), program::kFailed);
}
