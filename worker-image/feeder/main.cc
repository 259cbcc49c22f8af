// sluice-feeder: flags, signals and the order in which things start and stop.
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <poll.h>
#include <prometheus/registry.h>
#include <csignal>
#include <cstdio>
#include <random>

#include "src/base/flags.h"
#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "src/http/exposition.h"
#include "src/http/server.h"
#include "worker-image/feeder/feeder.h"
#include "worker-image/feeder/remote_pool.h"

namespace sluice::feeder {
namespace {

const std::vector<Flag> kFlags = {
    {"socket", "PATH", "/run/sluice/feeder.sock", "Unix socket that clients connect to"},
    {"workers", "HOST:PORT", "", "name of the remote workers' headless Service; empty: none"},
    {"threads", "N", "0", "local threads; 0: from the CPU quota"},
    {"arena-bytes", "N", "536870912", "shared memory for batches"},
    {"metrics-address", "IP:PORT", "none", "where /metrics, /healthz and /readyz are served; none: nowhere"},
    {"tls-dir", "DIR", "", "ca.crt, tls.crt and tls.key for talking to workers"},
    {"insecure", "", "", "talk to workers in the clear"},
    {"job", "NAME", "", "the training job, for metrics"},
    {"namespace", "NS", "", "its namespace, for metrics"},
    {"exit-with-parent", "", "", "end when the process that started us ends"},
    {"python-path", "DIR", "", "put before PYTHONPATH of Python executors"},
};

// Of the threads that execute here while remote workers' results come in.
constexpr int kNiceBesideWorkers = 10;

struct Settings {
  Flags flags;
  std::size_t fixed_threads = 0;  // 0: follow the quota
  std::size_t arena_bytes = 0;
};

Result<Settings> read_settings(int argc, char** argv) {
  SLUICE_TRY(Flags flags, Flags::parse(kFlags, argc, argv));
  SLUICE_TRY(const std::int64_t threads, flags.integer("threads"));
  SLUICE_TRY(const std::int64_t arena_bytes, flags.integer("arena-bytes"));
  if (threads < 0 || threads > 1024) return invalid_argument("--threads: must be between 0 and 1024");
  if (arena_bytes < (1 << 20)) return invalid_argument("--arena-bytes: must be at least 1048576");
  if (!flags.positional().empty()) return invalid_argument("unexpected word '" + flags.positional().front() + "'");
  return Settings{std::move(flags), static_cast<std::size_t>(threads), static_cast<std::size_t>(arena_bytes)};
}

std::size_t wanted_threads(const Settings& settings) {
  if (settings.fixed_threads > 0) return settings.fixed_threads;
  return executor::threads_for(executor::cpu_quota_cores(), executor::cpus_allowed());
}

// An identifier for one life of the feeder; it need not be secret.
std::string new_session() {
  std::random_device device;
  char text[17];
  std::snprintf(text, sizeof(text), "%08x%08x", device(), device());
  return text;
}

Result<std::unique_ptr<http::Server>> serve_pages(const std::string& address,
                                                  const std::shared_ptr<prometheus::Registry>& registry) {
  if (address == "none") return std::unique_ptr<http::Server>();
  const auto fine = [] { return http::Page{.body = "ok\n"}; };
  return http::Server::start(address,
                             {{"/metrics", http::metrics_page({registry})}, {"/healthz", fine}, {"/readyz", fine}});
}

// Blocks until a termination signal, or until the parent is gone; calls `tick` every second.
void wait_for_end(int signals, pid_t parent, const std::function<void()>& tick) {
  while (true) {
    pollfd entry{signals, POLLIN, 0};
    if (::poll(&entry, 1, 1000) > 0) {
      signalfd_siginfo info{};
      (void)!::read(signals, &info, sizeof(info));
      return log_info("feeder", "ending on a signal", {{"signal", info.ssi_signo}});
    }
    if (parent != 0 && ::getppid() != parent) return log_info("feeder", "ending with the parent");
    tick();
  }
}

// Null where there are no remote workers.
struct Remote {
  std::unique_ptr<Discovery> discovery;
  std::unique_ptr<RemotePool> pool;
};

Result<Remote> connect_workers(const Flags& flags, const std::shared_ptr<transport::Arena>& arena, Feeder& feeder,
                               const Clock& clock) {
  Remote remote;
  if (flags.text("workers").empty()) return remote;
  SLUICE_TRY(const HostPort name, parse_host_port(flags.text("workers")));
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), flags.given("insecure")));
  remote.discovery = std::make_unique<Discovery>(name, resolve_addresses);
  remote.pool = std::make_unique<RemotePool>([discovery = remote.discovery.get()] { return discovery->addresses(); },
                                             credentials, arena, feeder, clock);
  feeder.set_remote(*remote.pool);
  return remote;
}

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  const pid_t parent = flags.given("exit-with-parent") ? ::getppid() : 0;
  if (parent != 0) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  SLUICE_TRY(auto arena, transport::Arena::create(settings.arena_bytes));
  const auto registry = std::make_shared<prometheus::Registry>();
  const executor::JobLabels labels{flags.text("job"), flags.text("namespace")};
  executor::ExecutorMetrics executor_metrics(*registry, labels, "local");
  FeederMetrics metrics(*registry, labels);
  const SystemClock clock;
  Feeder feeder({.local = {.threads = wanted_threads(settings),
                           .threads_max = std::max(settings.fixed_threads, executor::cpus_allowed()),
                           .arena = arena,
                           .python_path = flags.text("python-path"),
                           .nice = flags.text("workers").empty() ? 0 : kNiceBesideWorkers},
                 .session = new_session()},
                clock, executor_metrics, metrics);
  SLUICE_TRY(const Remote remote, connect_workers(flags, arena, feeder, clock));
  SLUICE_TRY(const auto server, SocketServer::start(flags.text("socket"), feeder));
  // After the socket: the trainer starts when /readyz answers.
  SLUICE_TRY(const auto pages, serve_pages(flags.text("metrics-address"), registry));
  log_info("feeder", "ready",
           {{"socket", flags.text("socket")}, {"threads", wanted_threads(settings)}, {"arena_bytes", arena->bytes()}});
  wait_for_end(signals, parent, [&] { feeder.tick(wanted_threads(settings)); });
  return {};
}

}  // namespace
}  // namespace sluice::feeder

int main(int argc, char** argv) {
  using namespace sluice;
  using namespace sluice::feeder;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(Flags::help(kFlags, "sluice-feeder --socket PATH [flags]").c_str(), stdout);
    return 0;
  }
  // Before any thread starts, so that all inherit it: signals are read from a descriptor, and a peer that goes away
  // is an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const int signals = ::signalfd(-1, &ending, SFD_CLOEXEC);
  const auto settings = read_settings(argc, argv);
  const auto result = settings.ok() ? run(*settings, signals) : Result<void>(settings.error());
  if (result.ok()) return 0;
  log_error("feeder", result.error().message());
  return settings.ok() ? 1 : 2;
}
