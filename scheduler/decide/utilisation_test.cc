#include "scheduler/decide/utilisation.h"

#include "scheduler/decide/decide.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// One core of its own for a demand of eight; a worker's core brings 0.77 of a local one.
const FluidJob kFed{.demand = 500, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

Utilisation utilisation_of(const ClusterSnapshot& snapshot, const Config& config = {}) {
  return scheduler::utilisation_of(snapshot, decide(snapshot, config), config);
}

double f(double supply_ratio) { return progress(supply_ratio, Config().softmin_exponent); }

TEST_CASE("a job on its own CPU, under the plan, and at most") {
  struct Case {
    const char* situation;
    MakeJob job;
    std::int64_t node_millicores;
    double own;
    double planned;
    double at_most;
  };
  const Case cases[] = {
      {"CPU is scarce", MakeJob("a").measures(kHungry), 4000, f(1. / 8), f((1 + 4 * .77) / 8), (1 + 4 * .77) / 8},
      {"max is lower than what there is", MakeJob("a").max(2).measures(kHungry), 4000, f(1. / 8), f((1 + 2 * .77) / 8),
       (1 + 2 * .77) / 8},
      {"none may be remote", MakeJob("a").placement(Placement::kLocal).measures(kHungry), 4000, f(1. / 8), f(1. / 8),
       1. / 8},
      {"there is no room", MakeJob("a").measures(kHungry), 500, f(1. / 8), f(1. / 8), (1 + .5 * .77) / 8},
      {"nothing is to be gained", MakeJob("a").measures(kFed), 4000, f(2), f(2), 1},
  };
  for (const Case& c : cases) {
    INFO(c.situation);
    const Utilisation u = utilisation_of(MakeSnapshot().node("n1", c.node_millicores).job(c.job).obj());
    CHECK(u.jobs == 1);
    CHECK(u.on_own_cpu == Approx(c.own).epsilon(0.002));
    CHECK(u.planned == Approx(c.planned).epsilon(0.002));
    CHECK(u.at_most == Approx(c.at_most).epsilon(0.002));
  }
}

TEST_CASE("with plenty of CPU the plan comes close to everything") {
  const Utilisation u = utilisation_of(MakeSnapshot().node("n1", 64000).job(MakeJob("a").measures(kHungry)).obj());
  CHECK(u.planned > 0.9);
  CHECK(u.at_most == 1);
}

TEST_CASE("a job counts by its GPUs, and not at all while it stands still or is not measured") {
  const ClusterSnapshot snapshot = MakeSnapshot()
                                       .node("n1", 100)
                                       .job(MakeJob("hungry").gpus(3).measures(kHungry))
                                       .job(MakeJob("fed").gpus(1).measures(kFed))
                                       .job(MakeJob("fresh").gpus(8))
                                       .job(MakeJob("stopped").gpus(8).measures(kHungry).not_running())
                                       .obj();
  const Utilisation u = utilisation_of(snapshot);
  CHECK(u.jobs == 2);
  CHECK(u.on_own_cpu == Approx((3 * f(1. / 8) + f(2)) / 4).epsilon(0.002));
}

TEST_CASE("scarce cores count where they bring most, by GPUs: half a knee of eight GPUs before a whole one of one") {
  FluidJob small = kHungry;
  small.demand = 1770;  // one core more feeds it
  const ClusterSnapshot snapshot = MakeSnapshot()
                                       .node("n1", 2000)
                                       .job(MakeJob("large").gpus(8).measures(kHungry))
                                       .job(MakeJob("small").gpus(1).measures(small))
                                       .obj();
  // A core brings 8 * .77 / 8 to the large one, .77 / 1.77 to the small one.
  const double large = (1 + 2 * .77) / 8, small_alone = 1 / 1.77;
  CHECK(utilisation_of(snapshot).at_most == Approx((8 * large + small_alone) / 9).epsilon(0.002));
}

TEST_CASE("where nothing is measured, nothing is said") {
  CHECK(utilisation_of({}).jobs == 0);
  const Utilisation u = utilisation_of(MakeSnapshot().node("n1", 4000).job(MakeJob("fresh")).obj());
  CHECK(u.jobs == 0);
  CHECK(u.at_most == 0);
}

TEST_CASE("workers on a node that takes no new ones are room, too: no plan exceeds what it says") {
  const ClusterSnapshot snapshot =
      MakeSnapshot().node("cordoned", 8000, 0, false).job(MakeJob("a").holds(4, "cordoned").measures(kHungry)).obj();
  const Utilisation u = utilisation_of(snapshot);
  CHECK(u.planned == Approx(f((1 + 4 * .77) / 8)).epsilon(0.002));
  CHECK(u.at_most == Approx((1 + 4 * .77) / 8).epsilon(0.002));
}

TEST_CASE("own CPU, plan and bound are in this order, and no other objective's plan exceeds the bound") {
  property("order", [](unsigned seed) {
    ClusterSnapshot snapshot = random_cluster(seed, everything());
    for (Job& job : snapshot.jobs) job.local_adjustable = false;
    for (const Objective objective : kObjectives) {
      Config config = some_config(seed);
      const double at_most = utilisation_of(snapshot, config).at_most;
      config.objective = objective;
      const Utilisation u = utilisation_of(snapshot, config);
      RC_ASSERT(0 <= u.on_own_cpu);
      RC_ASSERT(u.on_own_cpu <= u.planned + 1e-12);
      RC_ASSERT(u.planned <= u.at_most + 1e-12);
      RC_ASSERT(u.at_most <= 1 + 1e-12);
      RC_ASSERT(u.planned <= at_most + 1e-9);
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
