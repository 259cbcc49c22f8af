// The operator, assembled: informers, the decision loop, the two controllers. main() adds the process around it.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "operator/act/controller.h"
#include "operator/act/pool_reconciler.h"
#include "operator/act/training_job_reconciler.h"
#include "operator/config.h"
#include "operator/decide/decision_loop.h"
#include "operator/observe/collection.h"
#include "operator/observe/pod_index.h"
#include "operator/publish/metrics.h"
#include "operator/publish/operation_metrics.h"
#include "operator/publish/pages.h"
#include "src/prom/client.h"

namespace sluice::control {

// Requests on their way to the API server. More would only wait in its own queues.
constexpr int kWritesAtOnce = 16;

// Beside each other, so that sixteen queries of two seconds fit a round; Prometheus takes twenty of all its clients.
constexpr int kQueriesAtOnce = 4;

// Longer than the API server's longest answer, with all that the client tries again, takes.
constexpr std::chrono::minutes kHungAfter{10};

// From the reconcilers' way to the cluster to another one: a test breaks the reconcilers there, and sees that it is
// caught.
using WrapSeams = std::function<act::ClusterSeams(act::ClusterSeams)>;

// Thread safety: lead(), stop(), ready() and health() may be called from any thread; the rest from one.
class ControlPlane {
 public:
  // `prometheus` may be null when config.metrics.url is empty. `instance` names this process in events.
  // REQUIRES: config, client and clock outlive the control plane.
  ControlPlane(const Config& config, const kube::Client& client, std::shared_ptr<const prom::Client> prometheus,
               const Clock& clock, const kube::UniformRandom& random, const std::string& instance,
               const WrapSeams& wrap = nullptr);
  ~ControlPlane();

  // Starts to watch. A standby watches, too, so that it can take over at once.
  void watch();

  // Every write is refused while `leads` is false. A process that was stopped for longer than its lease, and goes on,
  // would otherwise write by what it saw before. REQUIRES: nothing has been written.
  void write_only_while(std::function<bool()> leads) { leads_ = std::move(leads); }

  // Starts to decide and to write, as soon as everything has been seen since: absence means nothing before that, and
  // what a standby saw may lag behind what the leader before it did. Does nothing after stop(). REQUIRES: watch() was
  // called; called once.
  void lead();

  // Returns when nothing will be written any more, for good.
  void stop();

  // Whether everything has been seen; by a leader, since it leads.
  bool ready() const;

  // An error names the loop that has hung for kHungAfter, and for how long: only a restart helps. May be called from
  // any thread.
  Result<void> health() const;

  // How it fares at the moment, for /metrics. May be called from any thread.
  Operation operation() const;

  const Metrics& metrics() const { return metrics_; }

  // For serve_pages(). `reader`: of the configuration. REQUIRES: the control plane outlives the pages.
  PageSources page_sources() const;

  // For callers without threads: all that watch() and lead() would run. They call look_again() of the informers when
  // they begin to lead. REQUIRES: neither is called.
  struct Parts {
    std::vector<kube::Informer*> informers;
    act::Controller& training_jobs;
    act::Controller& pools;
    decide::DecisionLoop& decisions;
    kube::EventRecorder& events;
    const decide::DecisionBoard& board;
  };
  Parts parts();

 private:
  void log_prometheus(const std::string& problem);
  static void log_window(int window_seconds);
  void handle_changes();
  void on_pod(const kube::Change& change);
  void enqueue_job_of(const kube::Change& change);
  act::ClusterSeams seams(const WrapSeams& wrap);
  decide::LoopSeams loop_seams();
  Result<void> perform(const kube::Action& action, std::stop_token stop) const;
  kube::ObjectPointer seen(const kube::Resource& resource, const kube::ObjectKey& key) const;
  observe::ClusterObjects see() const;
  void run_leader(std::stop_token stop);

  template <class Self>
  static auto collections_of(Self& self) {
    return std::array{&self.training_jobs_,    &self.pools_, &self.jobs_,  &self.services_,
                      &self.network_policies_, &self.pods_,  &self.nodes_, &self.resource_quotas_,
                      &self.limit_ranges_};
  }
  auto everything() { return collections_of(*this); }
  auto everything() const { return collections_of(*this); }

  const Config& config_;
  const kube::Client& client_;
  const std::shared_ptr<const prom::Client> prometheus_;
  const Clock& clock_;
  std::function<bool()> leads_;  // null: there is no other replica

  decide::DecisionBoard board_;
  Metrics metrics_;
  kube::EventRecorder recorder_;
  std::string prometheus_problem_;  // as it was logged last; only the decision loop's thread asks
  observe::PrometheusSource source_;
  observe::PodIndex worker_pods_{observe::job_of_worker};
  observe::PodIndex trainer_pods_{observe::job_of_trainer};
  act::TrainingJobReconciler training_job_reconciler_;
  act::PoolReconciler pool_reconciler_;
  act::Controller training_job_controller_;
  act::Controller pool_controller_;
  decide::DecisionLoop loop_;
  // After what their handlers use, so that they end before it.
  observe::Collection training_jobs_;
  observe::Collection pools_;
  observe::Collection jobs_;
  observe::Collection services_;
  observe::Collection network_policies_;
  observe::Collection pods_;
  observe::Collection nodes_;
  observe::Collection resource_quotas_;
  observe::Collection limit_ranges_;
  const std::shared_ptr<prometheus::Collectable> operation_metrics_ =
      make_operation_metrics([this] { return operation(); });
  std::mutex mutex_;
  std::atomic<bool> led_ = false;
  bool stopped_ = false;
  std::jthread leader_;
};

}  // namespace sluice::control
