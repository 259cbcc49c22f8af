#include "operator/control_plane.h"

#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"
#include "src/base/logging.h"

namespace sluice::control {

using nlohmann::json;
using observe::field;
using observe::text_field;

namespace {

constexpr int kReconcileThreads = 2;

std::string managed_selector() { return std::string(kManagedByLabel) + "=" + std::string(kOperatorManager); }

// What of a trainer's Job a decision depends on.
std::string trainer_state(const kube::ObjectPointer& job) {
  if (!job) return "gone";
  const bool over = observe::condition_is_true(*job, "Complete") || observe::condition_is_true(*job, "Failed");
  return over ? "over" : observe::integer_field(*job, "/status/ready") > 0 ? "running" : "starting";
}

bool is_trainer(const json& pod) {
  return text_field(pod, "/metadata/labels/sluice.dev~1component") == kTrainerComponent;
}

// A worker that we did not send away.
bool is_lost(const kube::ObjectPointer& before, const kube::ObjectPointer& after) {
  if (!before || !field(*before, "/metadata/deletionTimestamp").is_null()) return false;
  return !after ||
         (text_field(*after, "/status/phase") == "Failed" && text_field(*before, "/status/phase") != "Failed");
}

}  // namespace

ControlPlane::ControlPlane(const Config& config, const kube::Client& client,
                           std::shared_ptr<const prom::Client> prometheus, const Clock& clock,
                           const std::string& instance)
    : config_(config),
      client_(client),
      prometheus_(std::move(prometheus)),
      clock_(clock),
      metrics_(board_),
      recorder_(client, clock, {.instance = instance}),
      source_(
          [this](const std::string& expression, std::stop_token stop) {
            auto answer = prometheus_->query(expression, stop);
            metrics_.queried(answer.ok());
            return answer;
          },
          config.metrics),
      training_job_reconciler_(seams(), config, board_, clock),
      pool_reconciler_(
          seams(), [this](const kube::ObjectKey& job) { return worker_pods_.workers_of(job); }, board_, clock),
      training_job_controller_(
          "training_job",
          [this](const kube::ObjectKey& key, std::stop_token stop) {
            return training_job_reconciler_.reconcile(key, stop);
          },
          [this] { metrics_.reconcile_failed("training_job"); }, clock),
      pool_controller_(
          "data_worker_pool",
          [this](const kube::ObjectKey& key, std::stop_token stop) { return pool_reconciler_.reconcile(key, stop); },
          [this] { metrics_.reconcile_failed("data_worker_pool"); }, clock),
      loop_({.interval = config.decision_interval,
             .scheduler = config.scheduler,
             .cluster_cpu_percent = config.cluster_cpu_percent},
            loop_seams(), clock, board_),
      training_jobs_(client, clock, kube::kTrainingJobs, config.watch_namespaces),
      pools_(client, clock, kube::kDataWorkerPools, config.watch_namespaces),
      jobs_(client, clock, kube::kJobs, config.watch_namespaces, managed_selector()),
      services_(client, clock, kube::kServices, config.watch_namespaces, managed_selector()),
      pods_(client, clock, kube::kPods, {}),
      nodes_(client, clock, kube::kNodes, {}) {
  handle_changes();
}

ControlPlane::~ControlPlane() { stop(); }

void ControlPlane::watch() {
  for (observe::Collection* collection : {&training_jobs_, &pools_, &jobs_, &services_, &pods_, &nodes_})
    collection->start();
}

void ControlPlane::lead() {
  std::lock_guard lock(mutex_);
  if (!stopped_) leader_ = std::jthread([this](std::stop_token stop) { run_leader(stop); });
}

void ControlPlane::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  leader_.request_stop();
  if (leader_.joinable()) leader_.join();
}

bool ControlPlane::ready() const {
  for (const observe::Collection* collection : {&training_jobs_, &pools_, &jobs_, &services_, &pods_, &nodes_})
    if (!collection->has_synced()) return false;
  return true;
}

void ControlPlane::run_leader(std::stop_token stop) {
  for (const observe::Collection* collection : {&training_jobs_, &pools_, &jobs_, &services_, &pods_, &nodes_})
    if (!collection->wait_for_sync(stop)) return;
  log_info("operator", "leading", {{"training_jobs", training_jobs_.snapshot().size()}});
  training_job_controller_.start(kReconcileThreads);
  pool_controller_.start(kReconcileThreads);
  loop_.run(stop);
  training_job_controller_.stop();
  pool_controller_.stop();
}

void ControlPlane::handle_changes() {
  training_jobs_.add_handler([this](const kube::ObjectKey& key, const auto& before, const auto& after) {
    training_job_controller_.enqueue(key);
    const bool new_spec =
        !before || !after || field(*before, "/metadata/generation") != field(*after, "/metadata/generation");
    if (new_spec) loop_.trigger();
  });
  pools_.add_handler([this](const kube::ObjectKey& key, const auto&, const auto&) {
    pool_controller_.enqueue(key);
    training_job_controller_.enqueue(key);  // a job and its pool have the same name
  });
  jobs_.add_handler([this](const kube::ObjectKey& key, const auto& before, const auto& after) {
    training_job_controller_.enqueue(key);
    if (trainer_state(before) != trainer_state(after)) loop_.trigger();
  });
  services_.add_handler([this](const kube::ObjectKey&, const auto& before, const auto& after) {
    enqueue_job_of(after ? after : before);
  });
  pods_.add_handler(
      [this](const kube::ObjectKey& key, const auto& before, const auto& after) { on_pod(key, before, after); });
}

void ControlPlane::enqueue_job_of(const kube::ObjectPointer& child) {
  const std::string job = text_field(*child, "/metadata/labels/sluice.dev~1job");
  if (!job.empty()) training_job_controller_.enqueue({text_field(*child, "/metadata/namespace"), job});
}

void ControlPlane::on_pod(const kube::ObjectKey& key, const kube::ObjectPointer& before,
                          const kube::ObjectPointer& after) {
  const kube::ObjectKey job = worker_pods_.apply(key, before, after);
  if (!job.name.empty()) {
    pool_controller_.enqueue(job);
    if (is_lost(before, after)) loop_.trigger();
  } else if (!before && after && is_trainer(*after)) {
    loop_.trigger();  // workers may have to give way to it
  }
}

act::ClusterSeams ControlPlane::seams() {
  return {.seen = [this](const kube::Resource& resource, const kube::ObjectKey& key) { return seen(resource, key); },
          .read = [this](const kube::Resource& resource, const kube::ObjectKey& key,
                         std::stop_token stop) { return client_.get(resource, key, stop); },
          .perform = [this](const kube::Action& action,
                            std::stop_token stop) { return kube::perform(client_, action, stop); },
          .record = [this](kube::Event event) { recorder_.record(std::move(event)); }};
}

decide::LoopSeams ControlPlane::loop_seams() {
  return {.see = [this] { return see(); },
          .measure = [this](std::stop_token stop) { return source_.observe(stop); },
          .perform = [this](const kube::Action& action,
                            std::stop_token stop) { return kube::perform(client_, action, stop); },
          .record = [this](kube::Event event) { recorder_.record(std::move(event)); },
          .decided =
              [this](std::chrono::duration<double> took) {
                metrics_.decided(took);
                for (const auto& [key, decision] : board_.last_round()->jobs) training_job_controller_.enqueue(key);
              }};
}

kube::ObjectPointer ControlPlane::seen(const kube::Resource& resource, const kube::ObjectKey& key) const {
  const std::pair<kube::Resource, const observe::Collection*> collections[] = {{kube::kTrainingJobs, &training_jobs_},
                                                                               {kube::kDataWorkerPools, &pools_},
                                                                               {kube::kJobs, &jobs_},
                                                                               {kube::kServices, &services_}};
  for (const auto& [kind, collection] : collections)
    if (kind == resource) return collection->get(key);
  return nullptr;
}

observe::ClusterObjects ControlPlane::see() const {
  return {training_jobs_.snapshot(), pools_.snapshot(), jobs_.snapshot(), pods_.snapshot(), nodes_.snapshot()};
}

}  // namespace sluice::control
