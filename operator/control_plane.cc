#include "operator/control_plane.h"

#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/observe/pod_trim.h"
#include "operator/plan_page.h"
#include "src/base/logging.h"

namespace sluice::control {

using nlohmann::json;
using observe::field;
using observe::text_field;

namespace {

// Jobs write little but statuses; those must not crowd out what people wait for.
constexpr int kTrainingJobThreads = 4;

// A pool's pods start within moments of each other: one status that counts them all, not one for each.
constexpr std::chrono::milliseconds kPoolReportDelay{300};

// Writing the pods of a waiting pool takes a busy API server about so long. Statuses wait for them: a status costs the
// server as much as a pod, and it is the pods that trainers wait for.
constexpr std::chrono::milliseconds kPerWaitingPool{50};

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

bool is_ending(const json& pod) {
  const std::string phase = text_field(pod, "/status/phase");
  return !field(pod, "/metadata/deletionTimestamp").is_null() || phase == "Failed" || phase == "Succeeded";
}

// A worker that served, or was to, and now does not. All else that pods do is only to be counted.
bool needs_replacement(const kube::Change& change) {
  return (!change.before || !is_ending(*change.before)) && (!change.after || is_ending(*change.after));
}

bool is_new_spec(const kube::Change& change) {
  return !change.before || !change.after ||
         field(*change.before, "/metadata/generation") != field(*change.after, "/metadata/generation");
}

}  // namespace

ControlPlane::ControlPlane(const Config& config, const kube::Client& client,
                           std::shared_ptr<const prom::Client> prometheus, const Clock& clock,
                           const kube::UniformRandom& random, const std::string& instance, const WrapSeams& wrap)
    : config_(config),
      client_(client),
      prometheus_(std::move(prometheus)),
      clock_(clock),
      metrics_(board_, config.scheduler),
      recorder_(client, clock, {.instance = instance}),
      source_(
          [this](const std::string& expression, std::stop_token stop) {
            auto answer = prometheus_->query(expression, stop);
            metrics_.queried(answer.ok());
            return answer;
          },
          config.metrics),
      training_job_reconciler_(seams(wrap), config, board_, clock),
      pool_reconciler_(
          seams(wrap), [this](const kube::ObjectKey& job) { return worker_pods_.workers_of(job); }, board_, clock),
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
             .cluster_cpu_percent = config.cluster_cpu_percent,
             .orders_at_once = kWritesAtOnce},
            loop_seams(), clock, board_),
      training_jobs_(client, clock, kube::kTrainingJobs, random, config.watch_namespaces),
      pools_(client, clock, kube::kDataWorkerPools, random, config.watch_namespaces),
      jobs_(client, clock, kube::kJobs, random, config.watch_namespaces, managed_selector()),
      services_(client, clock, kube::kServices, random, config.watch_namespaces, managed_selector()),
      pods_(client, clock, kube::kPods, random, {}, "", observe::trim_pod),
      nodes_(client, clock, kube::kNodes, random, {}) {
  handle_changes();
}

ControlPlane::~ControlPlane() { stop(); }

void ControlPlane::watch() {
  for (observe::Collection* collection : {&training_jobs_, &pools_, &jobs_, &services_, &pods_, &nodes_})
    collection->start();
  recorder_.start();
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
  training_job_controller_.start(kTrainingJobThreads);
  pool_controller_.start(kWritesAtOnce);
  loop_.run(stop);
  training_job_controller_.stop();
  pool_controller_.stop();
}

void ControlPlane::handle_changes() {
  training_jobs_.add_handler([this](const kube::Change& change) {
    training_job_controller_.enqueue(change.key, change.priority());
    if (is_new_spec(change)) loop_.trigger();
  });
  pools_.add_handler([this](const kube::Change& change) {
    pool_controller_.enqueue(change.key, change.priority());
    // A job and its pool have the same name.
    training_job_controller_.enqueue(change.key,
                                     change.before && change.after ? kube::Priority::kLow : change.priority());
  });
  jobs_.add_handler([this](const kube::Change& change) {
    training_job_controller_.enqueue(change.key, change.priority());
    if (trainer_state(change.before) != trainer_state(change.after)) loop_.trigger();
  });
  services_.add_handler([this](const kube::Change& change) { enqueue_job_of(change); });
  pods_.add_handler([this](const kube::Change& change) { on_pod(change); });
}

void ControlPlane::enqueue_job_of(const kube::Change& change) {
  const kube::Json& child = change.after ? *change.after : *change.before;
  const std::string job = text_field(child, "/metadata/labels/sluice.dev~1job");
  if (!job.empty()) training_job_controller_.enqueue({change.key.namespace_, job}, change.priority());
}

void ControlPlane::on_pod(const kube::Change& change) {
  const kube::ObjectKey job = worker_pods_.apply(change.key, change.before, change.after);
  if (!job.name.empty()) {
    if (needs_replacement(change))
      pool_controller_.enqueue(job, change.priority());
    else
      pool_controller_.enqueue_report(job, kPoolReportDelay);
    if (is_lost(change.before, change.after)) loop_.trigger();
  } else if (!change.before && change.after && is_trainer(*change.after)) {
    loop_.trigger();  // workers may have to give way to it
  }
}

http::PageMaker ControlPlane::plan_page() const {
  return
      [this](const http::Query& query) { return control::plan_page(*board_.last_round(), config_.scheduler, query); };
}

ControlPlane::Parts ControlPlane::parts() {
  std::vector<kube::Informer*> informers;
  for (const observe::Collection* collection : {&training_jobs_, &pools_, &jobs_, &services_, &pods_, &nodes_})
    for (const auto& informer : collection->informers()) informers.push_back(informer.get());
  return {std::move(informers), training_job_controller_, pool_controller_, loop_, recorder_, board_};
}

act::ClusterSeams ControlPlane::seams(const WrapSeams& wrap) {
  act::ClusterSeams seams = {
      .seen = [this](const kube::Resource& resource, const kube::ObjectKey& key) { return seen(resource, key); },
      .read = [this](const kube::Resource& resource, const kube::ObjectKey& key,
                     std::stop_token stop) { return client_.get(resource, key, stop); },
      .perform = [this](const kube::Action& action, std::stop_token stop) { return perform(action, stop); },
      .record = [this](kube::Event event) { recorder_.record(std::move(event)); },
      .busy = [this] { return std::chrono::milliseconds(kPerWaitingPool * pool_controller_.backlog()); }};
  return wrap ? wrap(std::move(seams)) : seams;
}

Result<void> ControlPlane::perform(const kube::Action& action, std::stop_token stop) const {
  const auto stored = kube::perform(client_, action, std::move(stop));
  return stored.ok() ? Result<void>() : stored.error();
}

decide::LoopSeams ControlPlane::loop_seams() {
  return {.see = [this] { return see(); },
          .measure = [this](std::stop_token stop) { return source_.observe(stop); },
          .perform = [this](const kube::Action& action, std::stop_token stop) { return perform(action, stop); },
          .record = [this](kube::Event event) { recorder_.record(std::move(event)); },
          .decided =
              [this](std::chrono::duration<double> took) {
                metrics_.decided(took);
                for (const auto& [key, decision] : board_.last_round()->jobs)
                  training_job_controller_.enqueue(key, kube::Priority::kLow);
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
