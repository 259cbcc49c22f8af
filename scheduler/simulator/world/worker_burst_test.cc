#include "scheduler/simulator/testing/manual_world.h"
#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

TEST_CASE("Idle CPU of a node goes to workers that need it, up to their limit") {
  // Two jobs with two workers of one core each on a node of ten cores. The second needs next to nothing.
  struct Row {
    const char* situation;
    double limit_factor;
    double knee_per_gpu;  // of the first job
    std::int64_t node_millicores;
    double want_level;  // of the first job's workers
  };
  const Row rows[] = {
      {"requests are limits", 1, 10, 64000, 1},
      {"up to the limit", 2.5, 10, 64000, 2.5},
      {"the rest of a small node, beside workers that need a tenth of a core", 2.5, 10, 4500, (4.5 - 0.1) / 2},
      {"a full node", 2.5, 10, 2100, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    testing::ManualWorld world(testing::small_cluster(),
                               {testing::job(0, 4, 100, row.knee_per_gpu), testing::job(0, 4, 100, 3.02)});
    world.cluster.physics.worker_limit_factor = row.limit_factor;
    world.simulated.nodes()[2].capacity_millicores = row.node_millicores;
    for (JobState& job : world.jobs) world.add_workers(job, 2, 2);
    world.share();
    share_idle_cpu_with_workers(world.simulated.nodes(), world.jobs, {0, 1}, 100, world.cluster.physics);
    for (const WorkerState& worker : world.jobs[0].workers)
      CHECK(worker.cpu_level == Approx(row.want_level).epsilon(0.03));
    CHECK(world.rates(0).remote_supply == Approx(0.77 * 2 * row.want_level).epsilon(0.03));
    CHECK(world.rates(0).remote_cores == 2);  // it is charged for its requests
  }
}

}  // namespace
}  // namespace sluice::simulator
