// The operator in the simulation and the scheduler library decide alike on the same snapshot. Nothing is lost or added
// on the way through informers, snapshot builder and board.
#include <nlohmann/json.hpp>

#include "operator/api/limit_range.h"
#include "operator/fault_simulation/cluster_run.h"
#include "operator/observe/snapshot_builder.h"
#include "scheduler/decide/decide.h"
#include "src/base/logging.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

observe::ClusterObjects objects_of(kube::fake::ApiServer& server) {
  return {server.all(kube::kTrainingJobs), server.all(kube::kDataWorkerPools), server.all(kube::kJobs),
          server.all(kube::kPods),         server.all(kube::kNodes),           {},
          server.all(api::kLimitRanges)};
}

TEST_CASE("the operator's plan is the scheduler's") {
  set_log_sink([](std::string_view) {});
  const std::string name = GENERATE(from_range(workload_names()));
  INFO(name);
  ClusterRun run(undisturbed(name), *workload(name).value(), {});
  REQUIRE(run.run().violations.empty());
  OperatorProcess* leader = run.leader();
  REQUIRE(leader != nullptr);

  // The memories that the leader carried into its next round are what its last one gave out.
  const auto before = leader->parts().board.last_round();
  observe::EstimatorMemories memories;
  for (const auto& [key, decision] : before->jobs)
    if (decision->plan.estimate.memory) memories[decision->job_uid] = *decision->plan.estimate.memory;
  leader->parts().decisions.decide_once({});
  const auto after = leader->parts().board.last_round();

  Random random(1);  // draws nothing, as no fault is set
  PrometheusModel prometheus(run.server(), run.clock(), random, *workload(name).value());
  const prom::Client client(std::shared_ptr<http::Transport>(std::shared_ptr<void>(), &prometheus));
  observe::PrometheusSource source(
      [&](const std::string& query, std::stop_token stop, std::chrono::milliseconds timeout) {
        return client.query(query, stop, timeout);
      },
      model_metrics(), run.clock());
  const control::Config config = simulated_config();
  const double now = std::chrono::duration<double>(run.clock().wall_now().time_since_epoch()).count();
  const scheduler::ClusterSnapshot snapshot =
      observe::SnapshotBuilder().build(objects_of(run.server()), source.observe({}), memories,
                                       {.cluster_cpu_percent = config.cluster_cpu_percent,
                                        .free_cpu_percent = config.free_cpu_percent,
                                        .resizes_feeders = workload(name).value()->resizes_pods},
                                       now);
  const scheduler::Plan plan = scheduler::decide(snapshot, config.scheduler);

  REQUIRE(plan.jobs.size() == after->jobs.size());
  CHECK(plan.capacity_millicores == after->capacity_millicores);
  CHECK(plan.granted_millicores == after->granted_millicores);
  for (const scheduler::JobPlan& wanted : plan.jobs) {
    const auto decided = leader->parts().board.get({wanted.id.job_namespace, wanted.id.name});
    REQUIRE(decided != nullptr);
    INFO(wanted.id.name << ": " << wanted.explanation);
    CHECK(decided->plan.workers == wanted.workers);
    CHECK(decided->plan.recommended == wanted.recommended);
    CHECK(decided->plan.victims == wanted.victims);
    CHECK(decided->plan.reason == wanted.reason);
    CHECK(decided->plan.bottleneck == wanted.bottleneck);
    CHECK(decided->plan.explanation == wanted.explanation);
    CHECK(decided->plan.estimate.memory == wanted.estimate.memory);
  }
  set_log_sink(nullptr);
}

}  // namespace
}  // namespace sluice::simulation
