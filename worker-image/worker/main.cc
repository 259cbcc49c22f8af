// sluice-worker: flags, signals, and the order in which things start and stop.
#include <poll.h>
#include <prometheus/registry.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "src/base/flags.h"
#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "src/http/exposition.h"
#include "src/http/server.h"
#include "worker-image/worker/install.h"
#include "worker-image/worker/worker_service.h"

namespace sluice::worker {
namespace {

const std::vector<Flag> kFlags = {
    {"listen", "IP:PORT", "0.0.0.0:7471", "where feeders connect"},
    {"threads", "N", "0", "executing threads; 0: from the CPU quota"},
    {"arena-bytes", "N", "0", "memory for results on their way; 0: half of the memory limit, at most 1 GiB"},
    {"metrics-address", "IP:PORT", "none", "where /metrics, /healthz and /readyz are served; none: nowhere"},
    {"tls-dir", "DIR", "", "ca.crt, tls.crt and tls.key; feeders must show a certificate of the same authority"},
    {"insecure", "", "", "serve anybody, in the clear"},
    {"job", "NAME", "", "the training job, for metrics"},
    {"namespace", "NS", "", "its namespace, for metrics"},
    {"drain-seconds", "N", "30", "how long a terminating worker may finish what it has"},
    {"python-path", "DIR", "", "put before PYTHONPATH of Python executors"},
};
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
  SLUICE_TRY(const std::int64_t threads, flags.integer("threads"));
  SLUICE_TRY(const std::int64_t arena_bytes, flags.integer("arena-bytes"));
  SLUICE_TRY(const std::int64_t drain_seconds, flags.integer("drain-seconds"));
  if (threads < 0 || threads > 1024) return invalid_argument("--threads: must be between 0 and 1024");
  if (arena_bytes < 0) return invalid_argument("--arena-bytes: must not be negative");
  if (drain_seconds < 0 || drain_seconds > 86400)
    return invalid_argument("--drain-seconds: must be between 0 and 86400");
  Settings settings{.flags = flags, .drain_time = std::chrono::seconds(drain_seconds)};
  settings.threads = threads > 0 ? static_cast<std::size_t>(threads)
                                 : executor::threads_for(executor::cpu_quota_cores(), executor::cpus_allowed());
  settings.arena_bytes = static_cast<std::size_t>(arena_bytes);
  if (arena_bytes == 0) {
    settings.arena_bytes =
        std::clamp(executor::memory_limit_bytes().value_or(2 * kArenaBytesMax) / 2, kArenaBytesMin, kArenaBytesMax);
  }
  return settings;
}

Result<std::unique_ptr<http::Server>> serve_pages(const std::string& address, const WorkerService& service,
                                                  const std::shared_ptr<prometheus::Registry>& registry) {
  if (address == "none") return std::unique_ptr<http::Server>();
  const auto healthy = [] { return http::Page{.body = "ok\n"}; };
  const auto ready = [&service] {
    return service.draining() ? http::Page{.status = 503, .body = "draining\n"} : http::Page{.body = "ok\n"};
  };
  return http::Server::start(address,
                             {{"/metrics", http::metrics_page({registry})}, {"/healthz", healthy}, {"/readyz", ready}});
}

void wait_for_signal(int signals) {
  pollfd entry{signals, POLLIN, 0};
  while (::poll(&entry, 1, -1) <= 0) {
  }
  signalfd_siginfo info{};
  (void)!::read(signals, &info, sizeof(info));
  log_info("worker", "draining", {{"signal", info.ssi_signo}});
}

Result<void> run(const Settings& settings, int signals) {
  const Flags& flags = settings.flags;
  SLUICE_TRY(const auto credentials, transport::read_credentials(flags.text("tls-dir"), flags.given("insecure")));
  SLUICE_TRY(auto arena, transport::Arena::create(settings.arena_bytes));
  const auto registry = std::make_shared<prometheus::Registry>();
  executor::ExecutorMetrics metrics(*registry, {flags.text("job"), flags.text("namespace")}, "remote");
  WorkerService service({.threads = settings.threads, .arena = arena, .python_path = flags.text("python-path")},
                        metrics);
  SLUICE_TRY(const auto server, transport::RemoteServer::start(flags.text("listen"), credentials, service));
  SLUICE_TRY(const auto pages, serve_pages(flags.text("metrics-address"), service, registry));
  log_info("worker", "ready",
           {{"listen", flags.text("listen")},
            {"port", server->port()},
            {"threads", settings.threads},
            {"arena_bytes", arena->bytes()},
            {"tls", credentials.has_value()}});
  wait_for_signal(signals);
  service.drain();
  const bool idle = service.wait_until_idle(std::chrono::steady_clock::now() + settings.drain_time);
  log_info("worker", idle ? "drained" : "drain time is over; unfinished batches are lost here and made elsewhere");
  return {};
}

int install(const Flags& flags, const char* program) {
  const auto bundle = bundle_of(program);
  const auto result = bundle.ok() ? install_bundle(*bundle, flags.positional()[1]) : Result<void>(bundle.error());
  if (!result.ok()) log_error("worker", result.error().message());
  return result.ok() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::worker

int main(int argc, char** argv) {
  using namespace sluice;
  using namespace sluice::worker;
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(Flags::help(kFlags, kUsage).c_str(), stdout);
    return 0;
  }
  const auto flags = Flags::parse(kFlags, argc, argv);
  if (flags.ok() && flags->positional().size() == 2 && flags->positional()[0] == "install")
    return install(*flags, argv[0]);
  // Before any thread starts, so that all inherit it: signals are read from a descriptor, and a peer that goes away
  // is an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  const int signals = ::signalfd(-1, &ending, SFD_CLOEXEC);
  auto usage = flags.ok() ? read_settings(*flags) : Result<Settings>(flags.error());
  if (usage.ok() && !flags->positional().empty())
    usage = invalid_argument("unexpected word '" + flags->positional().front() + "'");
  const auto result = usage.ok() ? run(*usage, signals) : Result<void>(usage.error());
  if (result.ok()) return 0;
  log_error("worker", result.error().message());
  return usage.ok() ? 1 : 2;
}
