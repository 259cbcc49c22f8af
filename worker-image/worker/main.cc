// sluice-worker: its flags and the order in which things start and stop.
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdio>

#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "src/http/server.h"
#include "worker-image/program/program.h"
#include "worker-image/worker/install.h"
#include "worker-image/worker/worker_service.h"

namespace sluice::worker {
namespace {

std::vector<Flag> known_flags() {
  return program::with_shared_flags({
      {"listen", "IP:PORT", "0.0.0.0:7471", "where feeders connect"},
      {"arena-bytes", "N", "0", "memory for results on their way; 0: half of the memory limit, at most 1 GiB"},
      {"drain-seconds", "N", "30", "how long a terminating worker may finish what it has"},
  });
}
constexpr const char* kUsage = "sluice-worker --listen IP:PORT [flags]\n       sluice-worker install DIR";
constexpr std::size_t kArenaBytesMin = std::size_t{64} << 20;
constexpr std::size_t kArenaBytesMax = std::size_t{1} << 30;

struct Settings {
  Flags flags;
  std::size_t threads = 1;
  std::size_t arena_bytes = 0;
  std::chrono::seconds drain_time{0};
};

Result<Settings> read_settings(const Flags& flags) {
  SLUICE_TRY(const std::size_t threads, program::fixed_threads(flags));
  SLUICE_TRY(const std::int64_t arena_bytes, flags.integer("arena-bytes"));
  SLUICE_TRY(const std::int64_t drain_seconds, flags.integer("drain-seconds"));
  if (arena_bytes < 0) return invalid_argument("--arena-bytes: must not be negative");
  if (drain_seconds < 0 || drain_seconds > 86400)
    return invalid_argument("--drain-seconds: must be between 0 and 86400");
  Settings settings{
      .flags = flags, .threads = program::threads_now(threads), .drain_time = std::chrono::seconds(drain_seconds)};
  settings.arena_bytes = static_cast<std::size_t>(arena_bytes);
  if (arena_bytes == 0) {
    settings.arena_bytes =
        std::clamp(executor::memory_limit_bytes().value_or(2 * kArenaBytesMax) / 2, kArenaBytesMin, kArenaBytesMax);
  }
  return settings;
}

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), flags.given("insecure")));
  SLUICE_TRY(auto arena, transport::Arena::create(settings.arena_bytes));
  const auto registry = std::make_shared<prometheus::Registry>();
  executor::ExecutorMetrics metrics(*registry, program::job_labels(flags), "remote");
  WorkerService service({.threads = settings.threads, .arena = arena, .python_path = flags.text("python-path")},
                        metrics);
  SLUICE_TRY(const auto server, transport::RemoteServer::start(flags.text("listen"), credentials, service));
  SLUICE_TRY(const auto pages, program::serve_pages(flags, registry, [&service] { return service.draining(); }));
  log_info("worker", "ready",
           {{"listen", flags.text("listen")},
            {"port", server->port()},
            {"threads", settings.threads},
            {"arena_bytes", arena->bytes()},
            {"tls", credentials.has_value()}});
  int signal = 0;
  while (signal == 0) signal = program::wait_for_signal(signals, -1);
  log_info("worker", "draining", {{"signal", signal}});
  service.drain();
  const bool idle = service.wait_until_idle(std::chrono::steady_clock::now() + settings.drain_time);
  log_info("worker", idle ? "drained" : "drain time is over; unfinished batches are lost here and made elsewhere");
  return {};
}

int install(const Flags& flags, const char* program) {
  const auto bundle = bundle_of(program);
  const auto result = bundle.ok() ? install_bundle(*bundle, flags.positional()[1]) : Result<void>(bundle.error());
  return program::exit_status("worker", result, program::kFailed);
}

}  // namespace
}  // namespace sluice::worker

int main(int argc, char** argv) {
  using namespace sluice;
  const std::vector<Flag> known = worker::known_flags();
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(Flags::help(known, worker::kUsage).c_str(), stdout);
    return 0;
  }
  const auto flags = Flags::parse(known, argc, argv);
  if (!flags.ok()) return program::exit_status("worker", flags.error(), program::kWrongUsage);
  if (flags->positional().size() == 2 && flags->positional()[0] == "install") return worker::install(*flags, argv[0]);
  const int signals = program::block_signals();
  auto settings = worker::read_settings(*flags);
  if (settings.ok() && !flags->positional().empty())
    settings = invalid_argument("unexpected word '" + flags->positional().front() + "'");
  if (!settings.ok()) return program::exit_status("worker", settings.error(), program::kWrongUsage);
  return program::exit_status("worker", worker::run(*settings, signals), program::kFailed);
}
