// sluice-operator: gives the training jobs of a cluster the data workers they need.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <iostream>
#include <thread>

#include "operator/config.h"
#include "operator/control_plane.h"
#include "operator/process_memory.h"
#include "operator/prometheus_connection.h"
#include "operator/publish/pages.h"
#include "src/base/flags.h"
#include "src/base/logging.h"
#include "src/http/request_metrics.h"
#include "src/http/write_limit.h"
#include "src/kube/config.h"
#include "src/kube/leader_election.h"

namespace sluice::control {
namespace {

const std::vector<Flag> kFlags = {{"config", "FILE", "/etc/sluice/config.yaml", "configuration (YAML)"},
                                  {"help", "", "", "show this text"}};

// Blocks SIGTERM and SIGINT for this thread and all that it starts; exactly one thread waits for them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

std::string instance_name() {
  if (const char* pod = std::getenv("POD_NAME"); pod != nullptr && *pod != '\0') return pod;
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return std::string(host) + "-" + std::to_string(getpid());
}

Result<std::shared_ptr<http::Transport>> connect_cluster(const Config& config, const Clock& clock,
                                                         http::RequestMetrics& metrics) {
  auto connection =
      config.kubeconfig.empty() ? kube::read_in_cluster(clock) : kube::read_kubeconfig(config.kubeconfig, clock);
  if (!connection.ok()) return connection.error().with_context("connection to Kubernetes");
  SLUICE_TRY(auto transport, kube::open_transport(*connection));
  return metrics.observe(std::move(transport), clock);
}

Result<std::shared_ptr<const prom::Client>> connect_prometheus(const Config& config, const Clock& clock) {
  if (config.metrics.url.empty()) return std::shared_ptr<const prom::Client>();
  SLUICE_TRY(auto transport, open_prometheus(config.metrics, clock));
  return std::make_shared<const prom::Client>(std::move(transport));
}

// Leads whenever this replica holds the lease; returns when stopped (ok) or when the lease was lost.
Result<void> run_elected(const Config& config, const kube::Client& client, const Clock& clock, ControlPlane& plane,
                         std::stop_token stop) {
  const LeaderElection& election = config.leader_election;
  kube::LeaderElectionOptions options{
      {election.lease_namespace, election.name}, instance_name(), election.lease, election.renew, election.retry};
  kube::LeaderElector elector(client, clock, kube::system_random(), options,
                              {.on_acquired = [&plane] { plane.lead(); }, .on_lost = [&plane] { plane.stop(); }});
  plane.write_only_while([&elector] { return elector.is_leader(); });
  return elector.run(stop);
}

Result<void> run(const Config& config, const sigset_t& signals) {
  const SystemClock clock;
  http::RequestMetrics requests;
  SLUICE_TRY(const auto transport, connect_cluster(config, clock, requests));
  const kube::ClientOptions client_options{.user_agent = "sluice-operator"};
  const kube::Client client(http::with_write_limit(transport, kWritesAtOnce), clock, client_options);
  // A renewal of the lease must not wait its turn behind a thousand pods.
  const kube::Client election_client(transport, clock, client_options);
  SLUICE_TRY(const auto prometheus, connect_prometheus(config, clock));
  ControlPlane plane(config, client, prometheus, clock, kube::system_random(), instance_name());
  PageSources sources = plane.page_sources();
  sources.collectables.push_back(requests.collectable());
  SLUICE_TRY(const Pages pages, serve_pages({config.metrics_address, config.probes_address,
                                             config.plan.reader.empty() ? std::string() : config.plan.address},
                                            std::move(sources)));
  plane.watch();

  std::stop_source stop;
  std::future<Result<void>> elected = std::async(std::launch::async, [&]() -> Result<void> {
    Result<void> outcome;
    if (config.leader_election.enabled)
      outcome = run_elected(config, election_client, clock, plane, stop.get_token());
    else
      plane.lead();
    // Lost the lease: the signal thread below must end, too.
    if (!outcome.ok()) kill(getpid(), SIGTERM);
    return outcome;
  });
  int signal = 0;
  sigwait(&signals, &signal);
  log_info("operator", "stopping", {{"signal", signal}});
  plane.stop();  // before the lease is given up: no other replica may write meanwhile
  stop.request_stop();
  return elected.get();
}

}  // namespace
}  // namespace sluice::control

int main(int argc, char** argv) {
  using namespace sluice;
  const auto flags = Flags::parse(control::kFlags, argc, argv);
  if (!flags.ok() || flags->given("help")) {
    if (!flags.ok()) std::cerr << flags.error().message() << "\n";
    std::cerr << Flags::help(control::kFlags, "sluice-operator --config FILE");
    return flags.ok() ? 0 : 2;
  }
  const auto config = control::read_config(flags->text("config"));
  if (!config.ok()) {
    std::cerr << config.error().message() << "\n";
    return 2;
  }
  control::share_heaps();
  const sigset_t signals = control::block_signals();
  if (const auto outcome = control::run(*config, signals); !outcome.ok()) {
    log_error("operator", "exiting", {{"error", outcome.error().to_string()}});
    return 1;
  }
  return 0;
}
