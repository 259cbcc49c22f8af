#include "operator/publish/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <utility>

#include "operator/publish/gauges.h"
#include "scheduler/decide/what_if.h"

namespace sluice::control {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

// What the last decision says, as gauges.
class BoardGauges final : public prometheus::Collectable {
 public:
  BoardGauges(const decide::DecisionBoard& board, const scheduler::Config& config) : board_(board), config_(config) {}

  std::vector<MetricFamily> Collect() const override {
    const auto round = board_.last_round();
    MetricFamily workers = gauge_family("sluice_job_workers", "Data workers of a job: desired, ready, recommended.");
    MetricFamily estimate = gauge_family("sluice_job_estimate", "The figures behind the last decision for a job.");
    MetricFamily gain = gauge_family("sluice_job_gain_ratio", "How much faster a job would step with more workers.");
    MetricFamily feeder = gauge_family("sluice_job_feeder_cores", "CPU requested for a job's feeders.");
    MetricFamily info = gauge_family("sluice_job_info", "1; why a job has its workers, and what limits it.");
    MetricFamily measured = gauge_family("sluice_job_metrics_available", "1: the last decision had a measurement.");
    for (const auto& [key, decision] : round->jobs) {
      add(info, info_labels(key, decision->plan), 1);
      add(measured, job_labels(key), decision->measurement ? 1 : 0);
      add_workers(workers, key, *decision);
      add_feeder(feeder, key, *decision);
      add_estimate(estimate, key, decision->plan);
      add_gain(gain, key, *decision);
    }
    MetricFamily granted =
        gauge_family("sluice_operator_cpu_granted_cores", "CPU that the last decision gives to data workers.");
    add(granted, {}, static_cast<double>(round->granted_millicores) / 1000);
    MetricFamily capacity =
        gauge_family("sluice_operator_cpu_capacity_cores", "CPU that data workers may take on all nodes together.");
    add(capacity, {}, static_cast<double>(round->capacity_millicores) / 1000);
    MetricFamily utilisation =
        gauge_family("sluice_operator_utilisation_ratio", "Of the measured jobs' accelerators, as the model sees it.");
    add_utilisation(utilisation, round->utilisation);
    std::vector<MetricFamily> families = {std::move(granted), std::move(capacity)};
    for (MetricFamily* family : {&info, &measured, &workers, &feeder, &estimate, &gain, &utilisation})
      if (!family->metric.empty()) families.push_back(std::move(*family));
    return families;
  }

 private:
  static std::vector<ClientMetric::Label> job_labels(const kube::ObjectKey& key) {
    return {{"job_namespace", key.namespace_}, {"training_job", key.name}};
  }

  static std::vector<ClientMetric::Label> info_labels(const kube::ObjectKey& key, const scheduler::JobPlan& plan) {
    std::vector<ClientMetric::Label> labels = job_labels(key);
    labels.push_back({"reason", std::string(to_string(plan.reason))});
    labels.push_back({"bottleneck", std::string(to_string(plan.bottleneck))});
    return labels;
  }

  static std::vector<ClientMetric::Label> labels(const kube::ObjectKey& key, const char* name, const char* value) {
    return {{"job_namespace", key.namespace_}, {"training_job", key.name}, {name, value}};
  }

  static void add_workers(MetricFamily& family, const kube::ObjectKey& key, const decide::JobDecision& decision) {
    add(family, labels(key, "state", "desired"), decision.plan.workers);
    add(family, labels(key, "state", "ready"), decision.ready_workers);
    add(family, labels(key, "state", "recommended"), decision.plan.recommended);
  }

  static void add_feeder(MetricFamily& family, const kube::ObjectKey& key, const decide::JobDecision& decision) {
    add(family, labels(key, "state", "in_force"), static_cast<double>(decision.feeder_millicores) / 1000);
    if (decision.plan.local.empty()) return;
    std::int64_t planned = 0;
    for (const scheduler::LocalCpu& local : decision.plan.local) planned += local.request_millicores;
    add(family, labels(key, "state", "planned"), static_cast<double>(planned) / 1000);
  }

  // What is not known is absent.
  static void add_estimate(MetricFamily& family, const kube::ObjectKey& key, const scheduler::JobPlan& plan) {
    const scheduler::Estimate& estimate = plan.estimate;
    if (estimate.confidence == scheduler::Confidence::kNone) return;
    const std::pair<const char*, double> figures[] = {{"demand_samples_per_second", estimate.demand_samples_per_second},
                                                      {"local_rate", estimate.local_rate_per_core},
                                                      {"remote_rate", estimate.remote_rate_per_core},
                                                      {"knee_cores", estimate.knee_cores},
                                                      {"remaining_seconds", estimate.remaining_seconds.value_or(0)},
                                                      {"supply_ratio", plan.supply_ratio}};
    for (const auto& [quantity, value] : figures)
      if (value > 0) add(family, labels(key, "quantity", quantity), value);
  }

  void add_gain(MetricFamily& family, const kube::ObjectKey& key, const decide::JobDecision& decision) const {
    if (decision.plan.estimate.confidence == scheduler::Confidence::kNone) return;
    for (const int more : scheduler::kUsualWorkersMore)
      add(family, labels(key, "more_workers", std::to_string(more).c_str()),
          scheduler::gain_of_workers_percent(decision.plan, decision.worker_millicores, more, config_) / 100);
  }

  static void add_utilisation(MetricFamily& family, const scheduler::Utilisation& utilisation) {
    if (utilisation.jobs == 0) return;
    add(family, {{"of", "own_cpu"}}, utilisation.on_own_cpu);
    add(family, {{"of", "plan"}}, utilisation.planned);
    add(family, {{"of", "any_plan"}}, utilisation.at_most);
  }

  const decide::DecisionBoard& board_;
  const scheduler::Config& config_;
};

}  // namespace

struct Metrics::Implementation {
  Implementation(const decide::DecisionBoard& board, const scheduler::Config& config)
      : gauges(std::make_shared<BoardGauges>(board, config)) {}

  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::shared_ptr<BoardGauges> gauges;
  prometheus::Counter& decisions = prometheus::BuildCounter()
                                       .Name("sluice_operator_decisions_total")
                                       .Help("Decisions taken, each for all jobs.")
                                       .Register(*registry)
                                       .Add({});
  prometheus::Histogram& decision_seconds =
      prometheus::BuildHistogram()
          .Name("sluice_operator_decision_seconds")
          .Help("Time to take a decision, without its measuring.")
          .Register(*registry)
          .Add({}, prometheus::Histogram::BucketBoundaries{0.0001, 0.001, 0.01, 0.1, 1, 10});
  prometheus::Family<prometheus::Counter>& errors = prometheus::BuildCounter()
                                                        .Name("sluice_operator_reconcile_errors_total")
                                                        .Help("Reconcile steps that failed and are tried again.")
                                                        .Register(*registry);
  prometheus::Family<prometheus::Counter>& queries = prometheus::BuildCounter()
                                                         .Name("sluice_operator_metrics_queries_total")
                                                         .Help("Prometheus queries by result.")
                                                         .Register(*registry);
  prometheus::Counter& answered = queries.Add({{"result", "answered"}});
  prometheus::Counter& unanswered = queries.Add({{"result", "failed"}});
};

Metrics::Metrics(const decide::DecisionBoard& board, const scheduler::Config& config)
    : implementation_(std::make_unique<Implementation>(board, config)) {
  for (const char* controller : {"training_job", "data_worker_pool"})
    implementation_->errors.Add({{"controller", controller}});
}

Metrics::~Metrics() = default;

void Metrics::decided(std::chrono::duration<double> took) {
  implementation_->decisions.Increment();
  implementation_->decision_seconds.Observe(took.count());
}

void Metrics::queried(bool answered) {
  (answered ? implementation_->answered : implementation_->unanswered).Increment();
}

void Metrics::reconcile_failed(const std::string& controller) {
  implementation_->errors.Add({{"controller", controller}}).Increment();
}

std::vector<std::weak_ptr<prometheus::Collectable>> Metrics::collectables() const {
  return {implementation_->registry, implementation_->gauges};
}

}  // namespace sluice::control
