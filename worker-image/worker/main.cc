// sluice-worker: its flags and the order in which things start and stop.
#include <prometheus/registry.h>

#include <algorithm>
#include <cstdio>

#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "worker-image/program/certificate_end.h"
#include "worker-image/program/freed_memory.h"
#include "worker-image/program/program.h"
#include "worker-image/program/source_files.h"
#include "worker-image/worker/install.h"
#include "worker-image/worker/listen_address.h"
#include "worker-image/worker/worker_service.h"

namespace sluice::worker {
namespace {

std::vector<Flag> known_flags() {
  return program::with_shared_flags({
      {"listen", "IP:PORT", "[::]:7471", "where feeders connect"},
      {"arena-bytes", "N", "0", "memory for results on their way; 0: half of the memory limit, at most 1 GiB"},
      {"drain-seconds", "N", "30", "how long a terminating worker may finish what it has"},
      {"unused-seconds", "N", "0", "end after so long without a feeder; 0: never"},
      {"insecure-anywhere", "IP:PORT", "",
       "with --insecure, instead of --listen: any address, not only a loopback one"},
  });
}
constexpr const char* kUsage = "sluice-worker --listen IP:PORT [flags]\n       sluice-worker install DIR";
constexpr int kTickMilliseconds = 1000;
constexpr std::chrono::seconds kLongestDrainWithoutMemory{2};
constexpr int kOutOfMemory = 137;  // as if the kernel had killed this process
constexpr std::size_t kArenaBytesMin = std::size_t{64} << 20;
constexpr std::size_t kArenaBytesMax = std::size_t{1} << 30;

struct Settings {
  Flags flags;
  std::size_t threads = 1;
  std::size_t arena_bytes = 0;
  std::chrono::seconds drain_time{0};
  std::chrono::seconds unused_time{0};  // 0: no limit
};

Result<Settings> read_settings(const Flags& flags) {
  SLUICE_TRY(const std::size_t threads, program::fixed_threads(flags));
  SLUICE_TRY(const std::int64_t arena_bytes, flags.integer("arena-bytes"));
  SLUICE_TRY(const std::int64_t drain_seconds, flags.integer("drain-seconds"));
  if (arena_bytes < 0) return invalid_argument("--arena-bytes: must not be negative");
  if (drain_seconds < 0 || drain_seconds > 86400)
    return invalid_argument("--drain-seconds: must be between 0 and 86400");
  SLUICE_TRY(const std::int64_t unused_seconds, flags.integer("unused-seconds"));
  if (unused_seconds < 0 || unused_seconds > 86400)
    return invalid_argument("--unused-seconds: must be between 0 and 86400");
  Settings settings{.flags = flags,
                    .threads = program::threads_now(threads),
                    .drain_time = std::chrono::seconds(drain_seconds),
                    .unused_time = std::chrono::seconds(unused_seconds)};
  settings.arena_bytes = static_cast<std::size_t>(arena_bytes);
  if (arena_bytes == 0) {
    settings.arena_bytes =
        std::clamp(executor::memory_limit_bytes().value_or(2 * kArenaBytesMax) / 2, kArenaBytesMin, kArenaBytesMax);
  }
  return settings;
}

// A worker whose trainer has finished gives its CPU back by itself, should there be no operator any more that deletes
// it.
bool is_of_no_use(const WorkerService& service, std::chrono::seconds unused_time) {
  const auto since = service.unused_since();
  return unused_time.count() > 0 && since && std::chrono::steady_clock::now() - *since >= unused_time;
}

// The kernel kills one process of a container and may let the others live. A worker whose Python process was killed
// gives up: its container is then seen to have run out of memory, and Sluice makes the next one larger.
struct OutOfMemory {
  std::size_t kills_before = executor::out_of_memory_kills().value_or(0);
  bool happened() const { return executor::out_of_memory_kills().value_or(0) > kills_before; }
};

// The exit status.
Result<int> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  SLUICE_TRY(const std::string listen, listen_address(flags));
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), flags.given("insecure")));
  SLUICE_TRY(auto arena, transport::Arena::create(settings.arena_bytes));
  const auto registry = std::make_shared<prometheus::Registry>();
  executor::ExecutorMetrics metrics(*registry, program::job_labels(flags), "remote");
  const SystemClock clock;
  program::CertificateEnd certificate_end(*registry, program::job_labels(flags), credentials, clock);
  program::SourceFiles sources(*registry, program::job_labels(flags), "remote", clock);
  WorkerService service({.threads = settings.threads,
                         .arena = arena,
                         .python_path = flags.text("python-path"),
                         .files = sources.files(),
                         .kept = sources.kept(),
                         .memory_available = [] { return executor::memory_available_bytes(); }},
                        metrics);
  SLUICE_TRY(const auto server, transport::RemoteServer::start(listen, credentials, service));
  SLUICE_TRY(const auto pages,
             program::serve_pages(flags, registry, [&service] { return service.draining() ? "draining" : ""; }));
  log_info("worker", "ready",
           {{"listen", listen},
            {"port", server->port()},
            {"metrics_port", pages.metrics_port()},
            {"probes_port", pages.probes_port()},
            {"threads", settings.threads},
            {"arena_bytes", arena->bytes()},
            {"tls", credentials.encrypted()}});
  int signal = 0;
  const OutOfMemory out_of_memory;
  while (signal == 0 && !out_of_memory.happened() && !is_of_no_use(service, settings.unused_time)) {
    signal = program::wait_for_signal(signals, kTickMilliseconds);
    service.tick();
    certificate_end.tick();
    sources.tick();
    if (const auto bytes = executor::memory_in_use_bytes()) metrics.saw_memory(*bytes);
  }
  const bool is_out_of_memory = out_of_memory.happened();
  log_info("worker", "draining", {{"signal", signal}, {"out_of_memory", is_out_of_memory}});
  service.drain();
  const auto drain_time =
      is_out_of_memory ? std::min(settings.drain_time, kLongestDrainWithoutMemory) : settings.drain_time;
  const bool idle = service.wait_until_idle(std::chrono::steady_clock::now() + drain_time);
  log_info("worker", idle ? "drained" : "drain time is over; unfinished batches are lost here and made elsewhere");
  if (!is_out_of_memory) return 0;
  log_error("worker", "out of memory: the kernel has killed a process of this container",
            {{"memory_limit_bytes", executor::memory_limit_bytes().value_or(0)}});
  return kOutOfMemory;
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
  program::keep_freed_memory();
  auto settings = worker::read_settings(*flags);
  if (settings.ok() && !flags->positional().empty())
    settings = invalid_argument("unexpected word '" + flags->positional().front() + "'");
  if (!settings.ok()) return program::exit_status("worker", settings.error(), program::kWrongUsage);
  const auto ended = worker::run(*settings, signals);
  return ended.ok() ? *ended : program::exit_status("worker", ended.error(), program::kFailed);
}
