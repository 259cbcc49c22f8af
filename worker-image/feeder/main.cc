// sluice-feeder: its flags and the order in which things start and stop.
#include <prometheus/registry.h>

#include <csignal>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "worker-image/feeder/arena_fit.h"
#include "worker-image/feeder/end_without_clients.h"
#include "worker-image/feeder/feeder.h"
#include "worker-image/feeder/remote_pool.h"
#include "worker-image/feeder/starter.h"
#include "worker-image/program/certificate_end.h"
#include "worker-image/program/discovery.h"
#include "worker-image/program/freed_memory.h"
#include "worker-image/program/program.h"
#include "worker-image/program/source_files.h"

namespace sluice::feeder {
namespace {

std::vector<Flag> known_flags() {
  return program::with_shared_flags({
      {"socket", "PATH", "/run/sluice/feeder.sock", "Unix socket that clients connect to"},
      {"workers", "HOST:PORT", "", "name of the remote workers' headless Service, or several by commas; empty: none"},
      {"arena-bytes", "N", "536870912", "shared memory for batches"},
      {"exit-with", "PID", "0", "end when this process, which started us, ends"},
      {"detach", "FD", "0", "be no child of the process that started us, and write our process id there"},
      {"threads-by-loaders", "", "", "no more threads than a loader's num_workers"},
      {"ranks", "N", "1", "clients that share this feeder; arena and threads are what each of them gets"},
      {"exit-without-clients", "LOCK", "", "end without clients, with the lock of this file, and remove its folder"},
  });
}

// Of the threads that execute here while remote workers' results come in.
constexpr int kNiceBesideWorkers = 10;
constexpr int kTickMilliseconds = 1000;
constexpr std::chrono::seconds kLookUpInterval{2};
constexpr int kClientlessMilliseconds = 100;  // so long a feeder that ends without clients may outlive them

struct Settings {
  Flags flags;
  std::size_t fixed_threads = 0;  // 0: follow the quota
  std::size_t arena_bytes = 0;
  std::size_t ranks = 1;
  pid_t starter = 0;  // none
  int detach = 0;     // none
};

Result<Settings> read_settings(int argc, char** argv) {
  SLUICE_TRY(Flags flags, Flags::parse(known_flags(), argc, argv));
  SLUICE_TRY(const std::size_t threads, program::fixed_threads(flags));
  SLUICE_TRY(const std::int64_t arena_bytes, flags.integer("arena-bytes"));
  if (arena_bytes < (1 << 20)) return invalid_argument("--arena-bytes: must be at least 1048576");
  SLUICE_TRY(const std::int64_t ranks, flags.integer("ranks"));
  SLUICE_TRY(const std::int64_t starter, flags.integer("exit-with"));
  SLUICE_TRY(const std::int64_t detach, flags.integer("detach"));
  if (ranks < 1 || ranks > static_cast<std::int64_t>(SocketServer::kClientsMax))
    return invalid_argument("--ranks: must be between 1 and " + std::to_string(SocketServer::kClientsMax));
  if (arena_bytes > std::numeric_limits<std::int64_t>::max() / ranks)
    return invalid_argument("--arena-bytes: too large for so many ranks");
  if (!flags.positional().empty()) return invalid_argument("unexpected word '" + flags.positional().front() + "'");
  return Settings{std::move(flags),
                  threads * static_cast<std::size_t>(ranks),
                  static_cast<std::size_t>(arena_bytes * ranks),
                  static_cast<std::size_t>(ranks),
                  static_cast<pid_t>(starter),
                  static_cast<int>(detach)};
}

// An identifier for one life of the feeder; it need not be secret.
std::string new_session() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", device(), device());
  return text;
}

// Blocks until a termination signal, until the starter is gone, or until there are no clients (where that is an end);
// calls `tick` every second.
void wait_for_end(int signals, const Starter& starter, EndWithoutClients* clientless,
                  const std::function<void()>& tick) {
  const int step_milliseconds = clientless != nullptr ? kClientlessMilliseconds : kTickMilliseconds;
  for (int waited_milliseconds = step_milliseconds;; waited_milliseconds += step_milliseconds) {
    if (const int signal = program::wait_for_signal(signals, step_milliseconds, starter.descriptor()); signal != 0)
      return log_info("feeder", "ending on a signal", {{"signal", signal}});
    if (starter.has_ended()) return log_info("feeder", "ending with the process that started it");
    if (clientless != nullptr && clientless->is_due()) return log_info("feeder", "ending without clients");
    if (waited_milliseconds < kTickMilliseconds) continue;
    waited_milliseconds = 0;
    tick();
  }
}

// Null where there are no remote workers.
struct Remote {
  std::unique_ptr<RemotePool> pool;
  std::unique_ptr<program::CertificateEnd> certificate_end;

  void tick() const {
    if (certificate_end) certificate_end->tick();
  }
};

// What all the names of --workers stand for.
Result<std::function<program::Addresses()>> look_up_workers(const std::string& names) {
  std::vector<std::shared_ptr<const program::Discovery>> discoveries;
  std::istringstream rest(names);
  for (std::string text; std::getline(rest, text, ',');) {
    const auto name = parse_host_port(text);
    if (!name.ok()) return name.error().with_context("--workers");
    discoveries.push_back(
        std::make_shared<const program::Discovery>(*name, kLookUpInterval, program::resolve_addresses));
  }
  return std::function([discoveries = std::move(discoveries)] {
    program::Addresses addresses;
    for (const auto& discovery : discoveries) addresses.merge(discovery->addresses());
    return addresses;
  });
}

Result<Remote> connect_workers(const Flags& flags, const std::shared_ptr<transport::Arena>& arena, Feeder& feeder,
                               prometheus::Registry& registry, const Clock& clock) {
  Remote remote;
  if (flags.text("workers").empty()) return remote;
  SLUICE_TRY(auto addresses, look_up_workers(flags.text("workers")));
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), flags.given("insecure")));
  remote.pool = std::make_unique<RemotePool>(std::move(addresses), transport::RemoteClient::with(credentials), arena,
                                             feeder, clock);
  remote.certificate_end =
      std::make_unique<program::CertificateEnd>(registry, program::job_labels(flags), credentials, clock);
  feeder.set_remote(*remote.pool);
  return remote;
}

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  if (settings.detach > 0) SLUICE_TRY_VOID(leave_starter(settings.detach));
  const Starter starter(settings.starter);
  SLUICE_TRY(auto arena, transport::Arena::create(settings.arena_bytes));
  const auto registry = std::make_shared<prometheus::Registry>();
  const executor::JobLabels labels = program::job_labels(flags);
  executor::ExecutorMetrics executor_metrics(*registry, labels, "local");
  FeederMetrics metrics(*registry, labels);
  const SystemClock clock;
  program::SourceFiles sources(*registry, labels, "local", clock);
  Feeder feeder({.local = {.threads = program::threads_now(settings.fixed_threads),
                           .threads_max = std::max(settings.fixed_threads, executor::cpus_allowed() * settings.ranks),
                           .arena = arena,
                           .python_path = flags.text("python-path"),
                           .nice = flags.text("workers").empty() ? 0 : kNiceBesideWorkers,
                           .kept = sources.kept(),
                           .memory_available = [] { return executor::memory_available_bytes(); }},
                 .session = new_session(),
                 .threads_by_loaders = flags.given("threads-by-loaders"),
                 .ranks = settings.ranks,
                 .files = sources.files()},
                clock, executor_metrics, metrics);
  SLUICE_TRY(const Remote remote, connect_workers(flags, arena, feeder, *registry, clock));
  std::optional<EndWithoutClients> clientless;  // before the socket, which has to be gone first
  if (const std::string lock = flags.text("exit-without-clients"); !lock.empty())
    clientless.emplace(
        lock, [&] { return feeder.clients(); }, clock);
  SLUICE_TRY(const auto server, SocketServer::start(flags.text("socket"), feeder));
  // After the socket: the trainer starts when /readyz answers.
  SLUICE_TRY(const auto pages, program::serve_pages(flags, registry, [] { return ""; }));
  log_info("feeder", "ready",
           {{"socket", flags.text("socket")},
            {"metrics_port", pages.metrics_port()},
            {"probes_port", pages.probes_port()},
            {"threads", program::threads_now(settings.fixed_threads)},
            {"arena_bytes", arena->bytes()}});
  if (const std::string line = arena_exceeds_memory(arena->bytes(), executor::memory_limit_bytes()); !line.empty())
    log_warning("feeder", line);
  wait_for_end(signals, starter, clientless ? &*clientless : nullptr, [&] {
    feeder.tick(program::threads_now(settings.fixed_threads));
    remote.tick();
    sources.tick();
  });
  return {};
}

}  // namespace
}  // namespace sluice::feeder

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(Flags::help(feeder::known_flags(), "sluice-feeder --socket PATH [flags]").c_str(), stdout);
    return 0;
  }
  const int signals = program::block_signals();
  program::keep_freed_memory();
  const auto settings = feeder::read_settings(argc, argv);
  if (!settings.ok()) return program::exit_status("feeder", settings.error(), program::kWrongUsage);
  return program::exit_status("feeder", feeder::run(*settings, signals), program::kFailed);
}
