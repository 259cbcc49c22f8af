// sluice-cache: its flags and the order in which things start and stop.
#include <prometheus/registry.h>

#include <cstdio>
#include <limits>
#include <optional>
#include <thread>

#include "src/base/logging.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/shared_disk.h"
#include "worker-image/cache/node_metrics.h"
#include "worker-image/cache/node_service.h"
#include "worker-image/program/program.h"

namespace sluice::node_cache {
namespace {

std::vector<Flag> known_flags() {
  return {
      {"socket", "PATH", "/run/sluice/cache.sock", "Unix socket that feeders and workers connect to"},
      {"directory", "DIR", "", "where the records are kept; it is made if it is missing"},
      {"bytes", "N", "", "of all its files on disk"},
      {"memory-bytes", "N", "0", "memory for records that are asked for again"},
      program::kPageFlags[0],
      program::kPageFlags[1],
  };
}
constexpr const char* kUsage = "sluice-cache --socket PATH --directory DIR --bytes N [flags]";
constexpr int kTickMilliseconds = 1000;

struct Settings {
  Flags flags;
  std::uint64_t bytes = 0;
  std::uint64_t memory_bytes = 0;
};

Result<Settings> read_settings(int argc, char** argv) {
  SLUICE_TRY(Flags flags, Flags::parse(known_flags(), argc, argv));
  if (!flags.positional().empty()) return invalid_argument("unexpected word '" + flags.positional().front() + "'");
  if (flags.text("directory").empty()) return invalid_argument("--directory is missing");
  if (flags.text("bytes").empty()) return invalid_argument("--bytes is missing");
  SLUICE_TRY(const std::int64_t bytes, flags.integer("bytes"));
  SLUICE_TRY(const std::int64_t memory_bytes, flags.integer("memory-bytes"));
  if (bytes <= 0) return invalid_argument("--bytes: must be more than 0");
  if (memory_bytes < 0) return invalid_argument("--memory-bytes: must not be negative");
  return Settings{std::move(flags), static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(memory_bytes)};
}

// Opens the cache's disk beside the rest: the heads of all records are read.
class Opening {
 public:
  Opening(cache::NodeCache& cache, cache::OpenSharedDisk open_disk)
      : thread_([this, &cache, open_disk = std::move(open_disk)](const std::stop_token& stop) {
          outcome_ = cache.open(open_disk, stop);
          is_done_ = true;
        }) {}

  // None: it is not done.
  std::optional<Result<void>> outcome() const { return is_done_ ? std::optional(outcome_) : std::nullopt; }

 private:
  Result<void> outcome_;
  std::atomic<bool> is_done_ = false;
  std::jthread thread_;  // last: it uses the rest
};

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  const SystemClock clock;
  const auto registry = std::make_shared<prometheus::Registry>();
  cache::NodeCounters counters;
  cache::NodeCache cache(settings.memory_bytes, counters);
  NodeService service(cache);
  transport::UnaryCounters server_counters;
  program::ShownCounts shown = shown_counts(*registry, cache, counters, service, server_counters);
  SLUICE_TRY(const auto pages,
             program::serve_pages(flags, registry, [&cache] { return cache.is_open() ? "" : "opening"; }));
  SLUICE_TRY(const auto server,
             transport::UnaryServer::start(flags.text("socket"), {.question_bytes = cache::kNodeMessageBytesMax},
                                           service, server_counters));
  const Opening opening(
      cache, cache::shared_disk_on(cache::make_system_disk(flags.text("directory")), {.bytes = settings.bytes}, clock));
  log_info("cache", "listens",
           {{"socket", flags.text("socket")},
            {"metrics_port", pages.metrics_port()},
            {"probes_port", pages.probes_port()},
            {"bytes_max", settings.bytes},
            {"memory_bytes_max", settings.memory_bytes}});
  int signal = 0;
  while (signal == 0) {
    signal = program::wait_for_signal(signals, kTickMilliseconds);
    if (const auto outcome = opening.outcome(); outcome && !outcome->ok()) return outcome->error();
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
