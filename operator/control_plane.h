// The operator, assembled: informers, the decision loop, the two controllers. main() adds the process around it.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "operator/act/controller.h"
#include "operator/act/reconcilers.h"
#include "operator/config.h"
#include "operator/decide/decision_loop.h"
#include "operator/metrics.h"
#include "operator/observe/collection.h"
#include "operator/observe/worker_pod_index.h"
#include "src/http/server.h"
#include "src/prom/client.h"

namespace sluice::control {

// That are on their way to the API server. More would only wait in its own queues.
constexpr int kWritesAtOnce = 16;

// From the reconcilers' way to the cluster to another one: a test breaks the reconcilers there, and sees that it is
// caught.
using WrapSeams = std::function<act::ClusterSeams(act::ClusterSeams)>;

// Thread safety: lead(), stop() and ready() may be called from any thread; the rest from one.
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

  // Starts to decide and to write, as soon as everything has been seen once: absence means nothing before that.
  // Does nothing after stop(). REQUIRES: watch() was called; called once.
  void lead();

  // Returns when nothing will be written any more, for good.
  void stop();

  // Whether everything has been seen once.
  bool ready() const;

  const Metrics& metrics() const { return metrics_; }

  // The page of plan_page.h about the last decision. REQUIRES: the control plane outlives the page.
  http::PageMaker plan_page() const;

  // For who has no threads: all that watch() and lead() would run. REQUIRES: neither is called.
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
  void handle_changes();
  void on_pod(const kube::Change& change);
  void enqueue_job_of(const kube::Change& change);
  act::ClusterSeams seams(const WrapSeams& wrap);
  decide::LoopSeams loop_seams();
  Result<void> perform(const kube::Action& action, std::stop_token stop) const;
  kube::ObjectPointer seen(const kube::Resource& resource, const kube::ObjectKey& key) const;
  observe::ClusterObjects see() const;
  void run_leader(std::stop_token stop);

  const Config& config_;
  const kube::Client& client_;
  const std::shared_ptr<const prom::Client> prometheus_;
  const Clock& clock_;

  decide::DecisionBoard board_;
  Metrics metrics_;
  kube::EventRecorder recorder_;
  observe::PrometheusSource source_;
  observe::WorkerPodIndex worker_pods_;
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
  observe::Collection pods_;
  observe::Collection nodes_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::jthread leader_;
};

}  // namespace sluice::control
