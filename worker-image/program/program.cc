#include "worker-image/program/program.h"

#include <poll.h>
#include <prometheus/registry.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "src/base/logging.h"
#include "src/executor/cgroup.h"
#include "src/http/exposition.h"
#include "src/http/server.h"

namespace sluice::program {

std::vector<Flag> with_shared_flags(std::vector<Flag> own) {
  const Flag shared[] = {
      {"threads", "N", "0", "threads that execute batches; 0: from the CPU quota"},
      kPageFlags[0],
      kPageFlags[1],
      {"tls-dir", "DIR", "", "ca.crt, tls.crt and tls.key of the job: feeder and workers speak to no others"},
      {"insecure", "", "", "feeder and workers speak in the clear, to any peer"},
      {"job", "NAME", "", "the training job, for metrics"},
      {"namespace", "NS", "", "its namespace, for metrics"},
      {"python-path", "DIR", "", "put before PYTHONPATH of Python executors"},
  };
  own.insert(own.end(), std::begin(shared), std::end(shared));
  return own;
}

Result<std::size_t> fixed_threads(const Flags& flags) {
  SLUICE_TRY(const std::int64_t threads, flags.integer("threads"));
  if (threads < 0 || threads > 1024) return invalid_argument("--threads: must be between 0 and 1024");
  return static_cast<std::size_t>(threads);
}

std::size_t threads_now(std::size_t fixed) {
  return fixed > 0 ? fixed : executor::threads_for(executor::cpu_quota_cores(), executor::cpus_allowed());
}

executor::JobLabels job_labels(const Flags& flags) { return {flags.text("job"), flags.text("namespace")}; }

namespace {

Result<std::unique_ptr<http::Server>> serve_at(const std::string& address, http::Routes routes,
                                               http::ServerLimits limits) {
  if (address == "none") return std::unique_ptr<http::Server>();
  return http::Server::start(address, std::move(routes), limits);
}

}  // namespace

Pages::Pages(std::unique_ptr<http::Server> metrics, std::unique_ptr<http::Server> probes)
    : metrics_(std::move(metrics)), probes_(std::move(probes)) {}
Pages::Pages(Pages&&) noexcept = default;
Pages::~Pages() = default;
std::uint16_t Pages::metrics_port() const { return metrics_ ? metrics_->port() : 0; }
std::uint16_t Pages::probes_port() const { return probes_ ? probes_->port() : 0; }

Result<Pages> serve_pages(const Flags& flags, const std::shared_ptr<prometheus::Registry>& registry,
                          std::function<std::string()> unready) {
  const auto healthy = [](const http::Query&) { return http::Page{.body = "ok\n"}; };
  const auto ready = [unready = std::move(unready)](const http::Query&) {
    const std::string reason = unready();
    return reason.empty() ? http::Page{.body = "ok\n"} : http::Page{.status = 503, .body = reason + '\n'};
  };
  SLUICE_TRY(auto metrics, serve_at(flags.text("metrics-address"), {{"/metrics", http::metrics_page({registry})}}, {}));
  SLUICE_TRY(auto probes,
             serve_at(flags.text("probes-address"), {{"/healthz", healthy}, {"/readyz", ready}}, http::kProbeLimits));
  return Pages(std::move(metrics), std::move(probes));
}

int block_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ending, nullptr);
  return ::signalfd(-1, &ending, SFD_CLOEXEC);
}

int wait_for_signal(int signals, int milliseconds, int other) {
  pollfd entries[] = {{signals, POLLIN, 0}, {other, POLLIN, 0}};
  if (::poll(entries, 2, milliseconds) <= 0 || entries[0].revents == 0) return 0;
  signalfd_siginfo info{};
  (void)!::read(signals, &info, sizeof(info));
  return static_cast<int>(info.ssi_signo);
}

int exit_status(std::string_view component, const Result<void>& result, int failed) {
  if (result.ok()) return 0;
  log_error(component, result.error().message());
  return failed;
}

}  // namespace sluice::program
