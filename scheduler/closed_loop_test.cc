// The policy in a loop with a fluid model of the cluster: metrics that lag, workers that take time to start.

#include "scheduler/testing/builders.h"
#include "scheduler/testing/fluid.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Seconds until the job runs at 90 % of the speed it would have without stalls, or -1.
int seconds_to_90_percent(FluidLoop& loop, const std::string& name, int limit_seconds) {
  while (loop.now_seconds() < limit_seconds) {
    loop.run(1);
    if (loop.speed(name) >= 0.9) return loop.now_seconds();
  }
  return -1;
}

TEST_CASE("one job with a knee of 8 cores reaches 90 % of full speed with its first estimate") {
  // docs/scheduling.md: 4 GPUs, knee 8, metrics 30 s old, start-up 20 s: at most 75 s. Decisions every 15 s over a window of 15 s.
  FluidLoop loop({{"n1", 64000, 0, true}}, {.decision_seconds = 15, .window_seconds = 15, .metrics_lag_seconds = 15, .startup_seconds = 20}, {});
  const FluidJob physics{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  loop.add(MakeJob("vision").gpus(4).local_millicores(1000).obj(), physics);
  CHECK(seconds_to_90_percent(loop, "vision", 200) == 65);
  const int decisions_until_then = loop.decisions();
  CHECK(decisions_until_then == 4);  // two without metrics, the jump, one while workers start
  loop.run(600);
  CHECK(loop.speed("vision") >= 0.94);
  CHECK(loop.changes("vision") <= 2);
}

TEST_CASE("the demonstration's vision job: decisions every 5 s, small workers") {
  for (const std::int64_t millicores : {250, 500}) {
    for (const double q : {6.0, 40.0}) {
      for (const double remote_rate : {500.0, 960.0, 1250.0}) {
        CAPTURE(millicores, q, remote_rate);
        FluidLoop loop({{"n1", 2000, 500, true}, {"n2", 2000, 500, true}}, {}, {});
        const FluidJob physics{.demand = 920, .local_rate = 1250, .remote_rate = remote_rate, .local_cores = 0.25, .q = q};
        loop.add(MakeJob("vision").max(8).worker_millicores(millicores).local_millicores(250).obj(), physics);
        const int reached = seconds_to_90_percent(loop, "vision", 120);
        CAPTURE(reached);
        CHECK(reached > 0);
        CHECK(reached <= 60);
        const double speed_then = loop.speed("vision");
        double worst = 1;
        for (int i = 0; i < 900; ++i) {
          loop.run(1);
          worst = std::min(worst, loop.speed("vision"));
        }
        CAPTURE(speed_then, loop.changes("vision"), loop.job("vision").allocated_workers);
        CHECK(worst >= 0.89);
        CHECK(loop.changes("vision") <= 4);
        WARN(millicores << "m q=" << q << " mu_R=" << remote_rate << " reached " << reached << " worst " << worst << " changes "
                        << loop.changes("vision") << " final " << loop.job("vision").allocated_workers << " " << loop.plan().jobs[0].explanation);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
