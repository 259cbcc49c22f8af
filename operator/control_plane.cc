#include "operator/control_plane.h"

#include <nlohmann/json.hpp>

#include "operator/api/config_map.h"
#include "operator/api/labels.h"
#include "operator/api/limit_range.h"
#include "operator/api/names.h"
#include "operator/api/network_policy.h"
#include "operator/api/object_trim.h"
#include "operator/api/pod.h"
#include "operator/api/pod_trim.h"
#include "operator/api/resource_quota.h"
#include "operator/api/trainer_job.h"
#include "operator/observe/host_ports.h"
#include "operator/process_memory.h"
#include "operator/publish/plan_access.h"
#include "operator/publish/plan_page.h"
#include "src/base/logging.h"

namespace sluice::control {

using api::Pod;
using api::TrainerJob;

namespace {

// Jobs write little but statuses; those must not crowd out what people wait for.
constexpr int kTrainingJobThreads = 4;

// A pool's pods start within moments of each other: one status that counts them all, not one for each.
constexpr std::chrono::milliseconds kPoolReportDelay{300};

// Writing the pods of a waiting pool takes a busy API server about so long. Statuses wait for them: a status costs the
// server as much as a pod, and it is the pods that trainers wait for.
constexpr std::chrono::milliseconds kPerWaitingPool{50};

std::string managed_selector() { return std::string(api::kManagedByLabel) + "=" + std::string(api::kOperatorManager); }

// What of a trainer's Job a decision depends on.
std::string trainer_state(const kube::ObjectPointer& job) {
  if (!job) return "gone";
  const TrainerJob trainer(*job);
  return trainer.over() ? "over" : trainer.ready() > 0 ? "running" : "starting";
}

// A worker that we did not send away.
bool is_lost(const kube::ObjectPointer& before, const kube::ObjectPointer& after) {
  if (!before || Pod(*before).deleting()) return false;
  return !after || (Pod(*after).failed() && !Pod(*before).failed());
}

// A worker that served, or was to, and now does not. All else that pods do is only to be counted.
bool needs_replacement(const kube::Change& change) {
  return (!change.before || Pod(*change.before).serves()) && (!change.after || !Pod(*change.after).serves());
}

bool is_new_spec(const kube::Change& change) {
  return !change.before || !change.after ||
         api::Object(*change.before).generation() != api::Object(*change.after).generation();
}

std::optional<kube::ObjectKey> learnt_in(const Config& config) {
  if (config.learnt_config_map.empty()) return std::nullopt;
  return kube::ObjectKey{config.leader_election.lease_namespace, config.learnt_config_map};
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
          [this](const std::string& expression, std::stop_token stop, std::chrono::milliseconds timeout) {
            auto answer = prometheus_->query(expression, std::move(stop), timeout);
            metrics_.queried(answer.ok());
            return answer;
          },
          config.metrics, clock),
      training_job_reconciler_(
          seams(wrap), [this](const kube::ObjectKey& job) { return trainer_pods_.pods_of(job); }, config, board_,
          clock),
      pool_reconciler_(
          seams(wrap), [this](const kube::ObjectKey& job) { return worker_pods_.pods_of(job); }, board_, clock),
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
             .free_cpu_percent = config.free_cpu_percent,
             .resize_feeders = config.resize_feeders,
             .nodes = config.nodes,
             .budgets = config.budgets,
             .namespace_caps = config.namespace_caps,
             .storages = config.storages,
             .learnt = learnt_in(config),
             .orders_at_once = kWritesAtOnce},
            loop_seams(), clock, board_),
      training_jobs_(client, clock, kube::kTrainingJobs, random, config.watch_namespaces, "", api::trim_training_job),
      pools_(client, clock, kube::kDataWorkerPools, random, config.watch_namespaces),
      jobs_(client, clock, kube::kJobs, random, config.watch_namespaces, managed_selector(), api::trim_trainer_job),
      services_(client, clock, kube::kServices, random, config.watch_namespaces, managed_selector()),
      network_policies_(client, clock, api::kNetworkPolicies, random, config.watch_namespaces, managed_selector()),
      pods_(client, clock, kube::kPods, random, {}, "", api::trim_pod),
      nodes_(client, clock, kube::kNodes, random, {}, "", api::trim_node),
      resource_quotas_(client, clock, api::kResourceQuotas, random, config.watch_namespaces),
      limit_ranges_(client, clock, api::kLimitRanges, random, config.watch_namespaces) {
  handle_changes();
}

ControlPlane::~ControlPlane() { stop(); }

// Once for each new problem, not once for each decision.
void ControlPlane::log_prometheus(const std::string& problem) {
  if (problem == prometheus_problem_) return;
  if (problem.empty()) log_info("observe", "Prometheus answers again");
  if (!problem.empty()) log_warning("observe", "Prometheus does not answer", {{"error", problem}});
  prometheus_problem_ = problem;
}

void ControlPlane::log_window(int window_seconds) {
  log_info("observe", "the window of the queries follows the interval of the scrapes",
           {{"window_seconds", std::to_string(window_seconds)}});
}

void ControlPlane::watch() {
  for (observe::Collection* collection : everything()) collection->start();
  recorder_.start();
}

void ControlPlane::lead() {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  led_ = true;
  for (observe::Collection* collection : everything()) collection->look_again();
  leader_ = std::jthread([this](std::stop_token stop) { run_leader(stop); });
}

void ControlPlane::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  led_ = false;
  leader_.request_stop();
  if (leader_.joinable()) leader_.join();
}

bool ControlPlane::ready() const {
  for (const observe::Collection* collection : everything())
    if (!collection->has_synced()) return false;
  return true;
}

void ControlPlane::run_leader(std::stop_token stop) {
  for (const observe::Collection* collection : everything())
    if (!collection->wait_for_sync(stop)) return;
  give_back_free_pages();  // of the first lists, which came with all their fields
  log_info("operator", "leading", {{"training_jobs", training_jobs_.snapshot().size()}});
  training_job_reconciler_.make_cache_identity(stop);
  source_.ask_at_once(kQueriesAtOnce);
  pool_reconciler_.write_at_once(kWritesAtOnce);
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
  network_policies_.add_handler([this](const kube::Change& change) { enqueue_job_of(change); });
  pods_.add_handler([this](const kube::Change& change) { on_pod(change); });
}

void ControlPlane::enqueue_job_of(const kube::Change& change) {
  const kube::Json& child = change.after ? *change.after : *change.before;
  const std::string job = api::Object(child).label(api::kJobLabel);
  if (!job.empty()) training_job_controller_.enqueue({change.key.namespace_, job}, change.priority());
}

void ControlPlane::on_pod(const kube::Change& change) {
  trainer_pods_.apply(change.key, change.before, change.after);
  const kube::ObjectKey job = worker_pods_.apply(change.key, change.before, change.after);
  if (!job.name.empty()) {
    if (needs_replacement(change))
      pool_controller_.enqueue(job, change.priority());
    else
      pool_controller_.enqueue_report(job, kPoolReportDelay);
    if (is_lost(change.before, change.after)) loop_.trigger();
  } else if (!change.before && change.after && Pod(*change.after).is_trainer()) {
    loop_.trigger();  // workers may have to give way to it
  }
}

Result<void> ControlPlane::health() const {
  const std::pair<const char*, Clock::Duration> silences[] = {
      {"decision loop", loop_.silent_for()},
      {"TrainingJob controller", training_job_controller_.longest_running()},
      {"DataWorkerPool controller", pool_controller_.longest_running()}};
  for (const auto& [loop, silence] : silences) {
    if (silence < kHungAfter) continue;
    return internal_error("the " + std::string(loop) + " has hung for " +
                          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silence).count()) + " s");
  }
  return {};
}

Operation ControlPlane::operation() const {
  using Seconds = std::chrono::duration<double>;
  Operation now{.leads = led_,
                .queue_depths = {{"training_job", training_job_controller_.waiting()},
                                 {"data_worker_pool", pool_controller_.waiting()}},
                .watch_ages = {}};
  for (const observe::Collection* collection : everything())
    now.watch_ages[std::string(collection->resource().plural)] = Seconds(collection->silent_for()).count();
  return now;
}

PageSources ControlPlane::page_sources() const {
  auto review = [this](const std::string& token) { return client_.review_token(token, kPlanAudience); };
  auto collectables = metrics_.collectables();
  collectables.push_back(operation_metrics_);
  return {.collectables = std::move(collectables),
          .health = [this] { return health(); },
          .ready = [this] { return ready(); },
          .plan =
              [this](const http::Query& query) {
                return control::plan_page(*board_.last_round(), config_.scheduler, query);
              },
          .admission = [access = std::make_shared<PlanAccess>(config_.plan.reader, std::move(review), clock_)](
                           const std::string& token) { return access->admit(token); }};
}

ControlPlane::Parts ControlPlane::parts() {
  std::vector<kube::Informer*> informers;
  for (const observe::Collection* collection : everything())
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
      .limit_ranges =
          [this](const std::string& name_space) { return api::limit_ranges_in(limit_ranges_.snapshot(), name_space); },
      .host_ports =
          [this](const kube::ObjectKey& job) {
            return observe::held_host_ports(pods_.snapshot(), jobs_.snapshot(), job);
          },
      .busy = [this] { return std::chrono::milliseconds(kPerWaitingPool * pool_controller_.backlog()); }};
  return wrap ? wrap(std::move(seams)) : seams;
}

Result<void> ControlPlane::perform(const kube::Action& action, std::stop_token stop) const {
  if (leads_ && !leads_()) return unavailable("the lease has run out: another replica may lead");
  const auto stored = kube::perform(client_, action, std::move(stop));
  return stored.ok() ? Result<void>() : stored.error();
}

decide::LoopSeams ControlPlane::loop_seams() {
  return {.see = [this] { return see(); },
          .measure =
              [this](std::stop_token stop) {
                const int window_seconds = source_.window_seconds();
                auto observations = source_.observe(stop);
                if (!stop.stop_requested()) log_prometheus(observations.problem);
                if (source_.window_seconds() != window_seconds) log_window(source_.window_seconds());
                return observations;
              },
          .perform = [this](const kube::Action& action, std::stop_token stop) { return perform(action, stop); },
          .record = [this](kube::Event event) { recorder_.record(std::move(event)); },
          .resizes_pods = [this](std::stop_token stop) { return client_.serves(kube::kPods, "resize", stop); },
          .read_learnt = [this](std::stop_token stop) -> Result<kube::Json> {
            SLUICE_TRY(const kube::Json map, client_.get(kube::kConfigMaps, *learnt_in(config_), stop));
            return api::config_data(map);
          },
          .decided =
              [this](std::chrono::duration<double> took) {
                metrics_.decided(took);
                for (const auto& [key, decision] : board_.last_round()->jobs)
                  training_job_controller_.enqueue(key, kube::Priority::kLow);
              }};
}

kube::ObjectPointer ControlPlane::seen(const kube::Resource& resource, const kube::ObjectKey& key) const {
  const std::pair<kube::Resource, const observe::Collection*> collections[] = {
      {kube::kTrainingJobs, &training_jobs_},
      {kube::kDataWorkerPools, &pools_},
      {kube::kJobs, &jobs_},
      {kube::kServices, &services_},
      {api::kNetworkPolicies, &network_policies_}};
  for (const auto& [kind, collection] : collections)
    if (kind == resource) return collection->get(key);
  return nullptr;
}

observe::ClusterObjects ControlPlane::see() const {
  return {training_jobs_.snapshot(), pools_.snapshot(),           jobs_.snapshot(),        pods_.snapshot(),
          nodes_.snapshot(),         resource_quotas_.snapshot(), limit_ranges_.snapshot()};
}

}  // namespace sluice::control
