#include "operator/publish/metrics.h"

#include <algorithm>

#include "src/base/testing/catch.h"
#include "src/http/exposition.h"

namespace sluice::control {
namespace {

std::string scrape(const Metrics& metrics) { return http::metrics_page(metrics.collectables())({}).body; }

decide::Round round_with_vision(scheduler::Confidence confidence) {
  decide::JobDecision decision;
  decision.plan.workers = 3;
  decision.plan.recommended = 4;
  decision.plan.reason = scheduler::Reason::kCpu;
  decision.plan.bottleneck = scheduler::Bottleneck::kDataBoundCpu;
  decision.ready_workers = 2;
  decision.feeder_millicores = 250;
  if (confidence != scheduler::Confidence::kNone) decision.plan.local = {{"n1", 2000, 8000}, {"n2", 500, 8000}};
  decision.plan.estimate.demand_samples_per_second = 920;
  decision.plan.estimate.local_rate_per_core = decision.plan.estimate.remote_rate_per_core = 1165;
  decision.plan.estimate.knee_cores = 0.79;
  decision.plan.estimate.remaining_seconds = 600;
  decision.plan.planned_supply_ratio = 0.5;
  decision.worker_millicores = 395;
  decision.plan.estimate.confidence = confidence;
  decide::Round round;
  round.jobs[{"default", "vision"}] = std::make_shared<const decide::JobDecision>(decision);
  round.granted_millicores = 1500;
  round.capacity_millicores = 4000;
  if (confidence != scheduler::Confidence::kNone) round.utilisation = {1, 0.25, 0.5, 0.75};
  return round;
}

TEST_CASE("every job's workers and estimate are exported under the job's own labels") {
  decide::DecisionBoard board;
  const scheduler::Config config;
  const Metrics metrics(board, config);
  board.publish(round_with_vision(scheduler::Confidence::kMeasured));
  const std::string page = scrape(metrics);
  for (const char* line :
       {R"(sluice_job_workers{job_namespace="default",training_job="vision",state="desired"} 3)",
        R"(sluice_job_workers{job_namespace="default",training_job="vision",state="ready"} 2)",
        R"(sluice_job_workers{job_namespace="default",training_job="vision",state="recommended"} 4)",
        R"(sluice_job_feeder_cores{job_namespace="default",training_job="vision",state="in_force"} 0.25)",
        R"(sluice_job_feeder_cores{job_namespace="default",training_job="vision",state="planned"} 2.5)",
        R"(sluice_job_info{job_namespace="default",training_job="vision",reason="Cpu",bottleneck="DataBoundCpu"} 1)",
        R"(sluice_job_metrics_available{job_namespace="default",training_job="vision"} 0)",
        R"(quantity="demand_samples_per_second"} 920)", R"(quantity="knee_cores"} 0.79)",
        R"(quantity="remaining_seconds"} 600)",
        R"(sluice_job_gain_ratio{job_namespace="default",training_job="vision",more_workers="1"} 0.786)",
        R"(more_workers="4"} 1.00)", R"(sluice_operator_utilisation_ratio{of="own_cpu"} 0.25)",
        R"(sluice_operator_utilisation_ratio{of="plan"} 0.5)",
        R"(sluice_operator_utilisation_ratio{of="any_plan"} 0.75)", "sluice_operator_cpu_granted_cores 1.5",
        "sluice_operator_cpu_capacity_cores 4"})
    CHECK_THAT(page, Catch::Contains(line));
}

TEST_CASE("what is not known, and a job that is gone, have no series") {
  decide::DecisionBoard board;
  const scheduler::Config config;
  const Metrics metrics(board, config);
  board.publish(round_with_vision(scheduler::Confidence::kNone));
  for (const char* absent :
       {R"(state="planned")", "sluice_job_estimate", "sluice_job_gain_ratio", "sluice_operator_utilisation_ratio"})
    CHECK_THAT(scrape(metrics), !Catch::Contains(absent));
  board.publish({});
  CHECK_THAT(scrape(metrics), !Catch::Contains("vision"));
}

TEST_CASE("the operator counts its own doings, from zero") {
  decide::DecisionBoard board;
  const scheduler::Config config;
  Metrics metrics(board, config);
  CHECK_THAT(scrape(metrics),
             Catch::Contains(R"(sluice_operator_reconcile_errors_total{controller="data_worker_pool"} 0)"));
  metrics.decided(std::chrono::milliseconds(2));
  metrics.queried(true);
  metrics.queried(false);
  metrics.reconcile_failed("training_job");
  const std::string page = scrape(metrics);
  for (const char* line : {"sluice_operator_decisions_total 1", "sluice_operator_decision_seconds_count 1",
                           R"(sluice_operator_metrics_queries_total{result="answered"} 1)",
                           R"(sluice_operator_metrics_queries_total{result="failed"} 1)",
                           R"(sluice_operator_reconcile_errors_total{controller="training_job"} 1)"})
    CHECK_THAT(page, Catch::Contains(line));
}

}  // namespace
}  // namespace sluice::control
