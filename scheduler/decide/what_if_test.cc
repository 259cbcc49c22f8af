#include "scheduler/decide/what_if.h"

#include "scheduler/decide/decide.h"
#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("more workers bring what the curve promises, fewer cost it, and none of unknown jobs do anything") {
  const ClusterSnapshot snapshot = MakeSnapshot().node("n1", 4000).job(MakeJob("a").measures(kHungry)).obj();
  const Plan plan = decide(snapshot, {});
  const auto f = [](double workers) { return progress((1 + 0.77 * workers) / 8, 6); };
  CHECK(gain_of_workers_percent(plan.jobs[0], 1000, 3, {}) == Approx(100 * (f(7) / f(4) - 1)));
  CHECK(gain_of_workers_percent(plan.jobs[0], 1000, 1, {}) ==
        Approx(plan.jobs[0].next_worker_gain_percent).epsilon(0.01));
  CHECK(gain_of_workers_percent(plan.jobs[0], 1000, -1, {}) == Approx(100 * (f(3) / f(4) - 1)));
  CHECK(gain_of_workers_percent(plan.jobs[0], 1000, -99, {}) == Approx(100 * (f(0) / f(4) - 1)));
  CHECK(gain_of_workers_percent({}, 1000, 3, {}) == 0);
}

TEST_CASE("what-if of a job whose supply or need is nothing") {
  JobPlan plan;
  plan.estimate = {.local_rate_per_core = 1000, .remote_rate_per_core = 770, .confidence = Confidence::kMeasured};
  CHECK(gain_of_workers_percent(plan, 1000, 3, {}) == 0);  // no need: more changes nothing
  plan.estimate.knee_cores = 8;
  CHECK(gain_of_workers_percent(plan, 1000, 3, {}) == 100);  // from standstill
  CHECK(gain_of_workers_percent(plan, 1000, 0, {}) == 0);
}

TEST_CASE("the gain as people read it") {
  CHECK(gain_text(3, 11.2) == "+3 workers: +11 % steps/s");
  CHECK(gain_text(1, 0) == "+1 worker: +0 % steps/s");
  CHECK(gain_text(-2, -40.4) == "-2 workers: -40 % steps/s");
}

TEST_CASE("more nodes go to whom the next decision would give them") {
  const ClusterSnapshot snapshot = MakeSnapshot()
                                       .node("n1", 2000)
                                       .job(MakeJob("hungry").measures(kHungry))
                                       .job(MakeJob("fed").measures(FluidJob{.demand = 500}))
                                       .job(MakeJob("stopped").not_running())
                                       .obj();
  const NodesGain gain = gain_of_nodes(snapshot, {{"n2", 4000}}, {});
  const std::vector<JobGain>& gains = gain.jobs;
  REQUIRE(gains.size() == 2);
  CHECK(gains[0].id.name == "fed");
  CHECK(gains[0].workers == 0);
  CHECK(gains[0].gain_percent == Approx(0).margin(1e-9));
  CHECK(gains[1].workers == 4);
  CHECK(gains[1].gain_percent > 100);

  const Plan before = decide(snapshot, {});
  CHECK(plan_of(before, "hungry").workers == 2);
  ClusterSnapshot larger = snapshot;
  larger.nodes.push_back({"n2", 4000});
  const Plan after = decide(larger, {});
  CHECK(plan_of(after, "hungry").workers == 2 + gains[1].workers);
  CHECK(gain.utilisation.planned == utilisation_of(larger, after, {}).planned);
  CHECK(gain.utilisation.planned > utilisation_of(snapshot, before, {}).planned);
}

TEST_CASE("nodes in addition are open to jobs that may use none of the others") {
  ClusterSnapshot snapshot =
      MakeSnapshot().node("n1", 4000).job(MakeJob("a").measures(FluidJob{.demand = 10'000, .local_cores = 1})).obj();
  snapshot.jobs[0].closed_groups = {true};
  const NodesGain gain = gain_of_nodes(snapshot, {Node{.name = "n2", .allocatable_millicores = 4000}}, {});
  REQUIRE(gain.jobs.size() == 1);
  CHECK(gain.jobs[0].workers == 4);
}

TEST_CASE("workers that need a node each get one on every node in addition") {
  ClusterSnapshot snapshot =
      MakeSnapshot().node("n1", 4000).job(MakeJob("a").measures(FluidJob{.demand = 10'000, .local_cores = 1})).obj();
  snapshot.nodes[0].domains = {0};
  snapshot.jobs[0].spread = {{.most_ahead = 1}};
  const Node more[] = {{.name = "n2", .allocatable_millicores = 4000}, {.name = "n3", .allocatable_millicores = 4000}};
  const NodesGain gain = gain_of_nodes(snapshot, {more[0], more[1]}, {});
  REQUIRE(gain.jobs.size() == 1);
  CHECK(gain.jobs[0].workers == 2);
}

TEST_CASE("what status promises of one more worker is what the plan said, and going there and back changes nothing") {
  property("one more", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.modes = false;
    const ClusterSnapshot snapshot = random_cluster(seed, shape);
    const Config config = some_config(seed);
    for (const JobPlan& plan : decide(snapshot, config).jobs) {
      const Job& job = job_of(snapshot, plan.id);
      if (plan.estimate.confidence == Confidence::kNone || plan.planned_supply_ratio < 0.01) continue;
      const double one_more = gain_of_workers_percent(plan, job.worker_millicores, 1, config);
      RC_ASSERT(one_more == Approx(plan.next_worker_gain_percent).epsilon(0.02).margin(0.05));
      const int change = static_cast<int>(seed % 5) + 1;
      JobPlan there = plan;
      there.recommended += change;
      there.planned_supply_ratio += change * static_cast<double>(job.worker_millicores) * plan.estimate.efficiency() /
                                    (1000 * plan.estimate.knee_cores);
      const double gain = gain_of_workers_percent(plan, job.worker_millicores, change, config);
      const double loss = gain_of_workers_percent(there, job.worker_millicores, -change, config);
      RC_ASSERT((1 + gain / 100) * (1 + loss / 100) == Approx(1).epsilon(1e-6));
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
