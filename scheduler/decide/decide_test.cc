// decide() end to end, by situation. The steps have tests of their own beside them.
#include "scheduler/decide/decide.h"

#include "scheduler/model/progress.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Wants 11 workers of one core.
const FluidJob kText{.demand = 500, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

MakeJob hungry(const std::string& name) { return MakeJob(name).measures(kHungry); }

Plan plan_for(const MakeSnapshot& snapshot) { return decide(snapshot.obj(), {}); }

TEST_CASE("an empty cluster gets an empty plan") {
  const Plan plan = decide({}, {});
  CHECK(plan.jobs.empty());
  CHECK(plan.capacity_millicores == 0);
}

TEST_CASE("one starving job on an empty cluster jumps to its knee") {
  const Plan plan = plan_for(MakeSnapshot().node("n1", 16000, 2000).job(hungry("vision")));
  const JobPlan& vision = plan_of(plan, "vision");
  CHECK(vision.workers == 11);
  CHECK(vision.recommended == 11);
  CHECK(vision.reason == Reason::kNeedMet);
  CHECK(vision.new_worker_nodes.size() == 11);
  CHECK(vision.bottleneck == Bottleneck::kDataBoundCpu);
  CHECK(vision.estimate.metrics_usable());
  CHECK(vision.estimate.memory);
  CHECK(plan.capacity_millicores == 14000);
  CHECK(plan.granted_millicores == 11000);
}

TEST_CASE("a language model next to a vision job leaves it everything") {
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 16000).job(MakeJob("language").measures(kText)).job(hungry("vision")));
  CHECK(plan_of(plan, "language").workers == 0);
  CHECK(plan_of(plan, "language").reason == Reason::kNotDataBound);
  CHECK(plan_of(plan, "language").bottleneck == Bottleneck::kGpuBound);
  CHECK(plan_of(plan, "vision").workers == 11);
}

TEST_CASE("when the nodes are full the plan says so and says what one more worker would bring") {
  const Plan plan = plan_for(MakeSnapshot().node("n1", 4000).job(hungry("vision")));
  const JobPlan& vision = plan_of(plan, "vision");
  CHECK(vision.workers == 4);
  CHECK(vision.reason == Reason::kCpu);
  // Supply (1 + 4 * 0.77) / 8 of the knee; one more worker adds 0.77 / 8.
  CHECK(vision.planned_supply_ratio == Approx(0.51).margin(0.001));
  CHECK(vision.next_worker_gain_percent == Approx(100 * (progress(0.60625, 6) / progress(0.51, 6) - 1)));
}

TEST_CASE("nothing to decide for jobs that are not running; their workers go") {
  const Plan plan = plan_for(MakeSnapshot().node("n1", 4000).job(MakeJob("done").not_running().holds(3, "n1")));
  CHECK(plan_of(plan, "done").workers == 0);
  CHECK(plan_of(plan, "done").victims.size() == 3);
  CHECK(plan_of(plan, "done").reason == Reason::kNotRunning);
}

TEST_CASE("the workers of a finished job are granted to the next in the same decision") {
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 3000).job(MakeJob("done").not_running().holds(3, "n1")).job(hungry("vision")));
  CHECK(plan_of(plan, "vision").workers == 3);
}

TEST_CASE("mode Off holds its workers and their room") {
  const Plan plan = plan_for(MakeSnapshot()
                                 .node("n1", 5000)
                                 .job(hungry("off").mode(Mode::kOff).holds(2, "n1"))
                                 .job(hungry("vision").priority(9)));
  CHECK(plan_of(plan, "off").workers == 2);
  CHECK(plan_of(plan, "off").reason == Reason::kModeOff);
  CHECK(plan_of(plan, "vision").workers == 3);
}

TEST_CASE("mode Recommend computes, but leaves the number of workers alone") {
  const Plan plan = plan_for(
      MakeSnapshot().node("n1", 16000).job(MakeJob("advised").mode(Mode::kRecommend).holds(2, "n1").measures(kHungry)));
  const JobPlan& advised = plan_of(plan, "advised");
  CHECK(advised.workers == 2);
  CHECK(advised.recommended == 11);
  CHECK(advised.reason == Reason::kNeedMet);
  CHECK(advised.victims.empty());
  CHECK(advised.new_worker_nodes.empty());
  CHECK(plan.granted_millicores == 2000);
  CHECK_THAT(advised.explanation, Catch::StartsWith("Recommends 11 workers (has 2). "));
}

TEST_CASE("a recommendation is made from what the others leave") {
  const Plan plan =
      plan_for(MakeSnapshot()
                   .node("n1", 10000)
                   .job(MakeJob("advised").mode(Mode::kRecommend).holds(2, "n1").measures(kHungry).priority(9))
                   .job(hungry("vision").max(5)));
  CHECK(plan_of(plan, "vision").workers == 5);
  CHECK(plan_of(plan, "advised").recommended == 5);
  CHECK(plan_of(plan, "advised").reason == Reason::kCpu);
}

TEST_CASE("a recommendation may be to give up workers") {
  const Plan plan = plan_for(
      MakeSnapshot().node("n1", 9000).job(MakeJob("advised").mode(Mode::kRecommend).holds(2, "n1").measures(kText)));
  CHECK(plan_of(plan, "advised").workers == 2);
  // Not all at once: its feeder does little while the workers do much, and an idle feeder is counted on for twice its
  // use.
  CHECK(plan_of(plan, "advised").recommended == 1);
  CHECK(plan_of(plan, "advised").victims.empty());
}

TEST_CASE("a pool in mode Recommend is scaled in by hand: the plan names the workers to stop") {
  const Plan plan =
      plan_for(MakeSnapshot()
                   .node("n1", 9000)
                   .job(MakeJob("advised").mode(Mode::kRecommend).holds(3, "n1").allocated(1).measures(kHungry)));
  CHECK(plan_of(plan, "advised").workers == 1);
  CHECK(plan_of(plan, "advised").victims == std::vector<std::string>{"advised-worker-2", "advised-worker-1"});
}

TEST_CASE("metrics vanish: the allocation is held against a growing neighbour, and the reason is told") {
  const Plan plan = plan_for(MakeSnapshot()
                                 .node("n1", 8000)
                                 .job(MakeJob("blind").holds(5, "n1").misses("Prometheus answered 503"))
                                 .job(hungry("vision").priority(9)));
  const JobPlan& blind = plan_of(plan, "blind");
  CHECK(blind.workers == 5);
  CHECK(blind.reason == Reason::kNoMetrics);
  CHECK_FALSE(blind.estimate.metrics_usable());
  CHECK(blind.estimate.metrics_problem == "Prometheus answered 503");
  CHECK(blind.bottleneck == Bottleneck::kUnknown);
  CHECK(plan_of(plan, "vision").workers == 3);
}

TEST_CASE("metrics stay away: the workers of the job go to measured jobs that need them, and only to them") {
  struct Row {
    const char* situation;
    double unmeasured_seconds;
    std::int64_t node_millicores;
    int min;
    int blind_workers;
    int vision_workers;
  };
  const Row rows[] = {
      {"ten minutes: frozen", 600, 8000, 0, 5, 3},
      {"a quarter of an hour: the measured job takes what it needs", 900, 8000, 0, 0, 8},
      {"its minimum is not for others", 900, 8000, 2, 2, 6},
      {"there is room for both: nothing is taken", 900, 30000, 0, 5, 11},
      {"room for the measured job and a part of the other", 900, 13000, 0, 2, 11},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    MakeJob blind("blind");
    blind.holds(5, "n1").min(row.min).misses("Prometheus answered 503").unmeasured_for(row.unmeasured_seconds);
    const Plan plan = plan_for(MakeSnapshot().node("n1", row.node_millicores).job(blind).job(hungry("vision")));
    CHECK(plan_of(plan, "blind").workers == row.blind_workers);
    CHECK(plan_of(plan, "blind").victims.size() == static_cast<std::size_t>(5 - row.blind_workers));
    CHECK(plan_of(plan, "vision").workers == row.vision_workers);
  }
}

TEST_CASE("Prometheus is away for an hour: no job takes workers from another") {
  const auto blind = [](const std::string& name, int workers) {
    return MakeJob(name).holds(workers, "n1").misses("Prometheus does not answer").unmeasured_for(3600);
  };
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 8000).job(blind("a", 5).weight(1)).job(blind("b", 3).weight(900)));
  CHECK(plan_of(plan, "a").workers == 5);
  CHECK(plan_of(plan, "b").workers == 3);
  CHECK(plan_of(plan, "a").reason == Reason::kMetricsFallback);
}

TEST_CASE("two unmeasured jobs share what a measured one leaves, by weight") {
  const auto blind = [](const std::string& name, int weight) {
    return MakeJob(name).holds(6, "n1").weight(weight).misses("no metrics").unmeasured_for(3600);
  };
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 17000).job(blind("a", 100)).job(blind("b", 200)).job(hungry("vision")));
  CHECK(plan_of(plan, "vision").workers == 11);
  CHECK(plan_of(plan, "a").workers == 2);
  CHECK(plan_of(plan, "b").workers == 4);
}

TEST_CASE("the time without metrics starts with the first decision that misses them, and ends with a measurement") {
  ClusterSnapshot snapshot = MakeSnapshot().node("n1", 8000).job(MakeJob("blind").holds(2, "n1")).obj();
  const auto next = [&](double later_seconds) {
    const Plan plan = decide(snapshot, Config{});
    snapshot.jobs[0].memory = plan.jobs[0].estimate.memory;
    snapshot.taken_at_seconds += later_seconds;
    return plan.jobs[0];
  };
  CHECK_FALSE(next(0).estimate.was_measured());
  CHECK(next(899).reason == Reason::kNoMetrics);
  CHECK(next(1).reason == Reason::kNoMetrics);
  CHECK(next(1).reason == Reason::kMetricsFallback);
  snapshot.jobs[0].observation = {kHungry.steady(2, snapshot.taken_at_seconds), ""};
  snapshot.jobs[0].observation.measurement->batches_in_window = 1;  // too few to estimate from
  CHECK(next(1).estimate.metrics_usable());
  snapshot.jobs[0].observation = {std::nullopt, "gone again"};
  const JobPlan gone = next(1);
  CHECK(gone.reason == Reason::kNoMetrics);
  CHECK(gone.estimate.was_measured());
  snapshot.jobs[0].running = false;
  snapshot.taken_at_seconds += 900;
  next(1);
  snapshot.jobs[0].running = true;
  CHECK(next(1).reason == Reason::kNoMetrics);
}

TEST_CASE("why a job has what it has without metrics, though others, the room or a quota took part in it") {
  struct Row {
    const char* situation;
    MakeJob blind;
    std::int64_t node_millicores;
    int want_workers;
    Reason want;
  };
  const Row rows[] = {
      {"frozen", MakeJob("blind").holds(4, "n1"), 8000, 4, Reason::kNoMetrics},
      {"frozen, one is lost and has no room", MakeJob("blind").holds(4, "n1").allocated(5), 4000, 5,
       Reason::kNoMetrics},
      {"for long, and others need the room", MakeJob("blind").holds(4, "n1").unmeasured_for(900), 13'000, 2,
       Reason::kMetricsFallback},
      {"for long, its maximum was lowered", MakeJob("blind").holds(4, "n1").max(3).unmeasured_for(900), 64'000, 3,
       Reason::kMax},
      {"mode Off, one is lost and has no room", MakeJob("blind").mode(Mode::kOff).holds(4, "n1").allocated(5), 4000, 5,
       Reason::kModeOff},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = plan_for(MakeSnapshot().node("n1", row.node_millicores).job(row.blind).job(hungry("vision")));
    CHECK(plan_of(plan, "blind").workers == row.want_workers);
    CHECK(to_string(plan_of(plan, "blind").reason) == to_string(row.want));
  }
}

TEST_CASE("advice counts on the job's own workers once, wherever they stand") {
  struct Row {
    const char* situation;
    std::int64_t millicores, cordoned_millicores;
    int want;
  };
  const Row rows[] = {
      {"all of them on a node that takes more", 8000, 0, 8},
      {"two of them on one that does not", 8000, 4000, 10},
      {"the node is full of them", 2000, 0, 2},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::string second = row.cordoned_millicores > 0 ? "n2" : "n1";
    const Plan plan = plan_for(MakeSnapshot()
                                   .node("n1", row.millicores)
                                   .node("n2", row.cordoned_millicores, 0, false)
                                   .job(MakeJob("advised").mode(Mode::kRecommend).holds(2, second).measures(kHungry)));
    CHECK(plan_of(plan, "advised").recommended == row.want);
    CHECK(plan_of(plan, "advised").workers == 2);
  }
}

TEST_CASE("two that are advised share what is left, and one without metrics keeps what it has") {
  const auto advised = [](const std::string& name) { return MakeJob(name).mode(Mode::kRecommend); };
  const Plan plan = plan_for(MakeSnapshot()
                                 .node("n1", 14'000)
                                 .job(advised("a").holds(2, "n1").measures(kHungry))
                                 .job(advised("b").measures(kHungry))
                                 .job(advised("blind").holds(4, "n1").misses("gone")));
  CHECK(plan_of(plan, "a").recommended + plan_of(plan, "b").recommended == 10);
  CHECK(std::abs(plan_of(plan, "a").recommended - plan_of(plan, "b").recommended) <= 2);
  CHECK(plan_of(plan, "blind").recommended == 4);
  CHECK(plan.granted_millicores == 6000);
}

TEST_CASE("metrics vanish while a worker is lost: the number is held, so that it comes back") {
  const Plan plan = plan_for(MakeSnapshot().node("n1", 8000).job(MakeJob("blind").holds(4, "n1").allocated(5)));
  CHECK(plan_of(plan, "blind").workers == 5);
  CHECK(plan_of(plan, "blind").new_worker_nodes.size() == 1);
}

TEST_CASE("a worker is lost: the number stays and the job is not punished for it") {
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 16000).job(MakeJob("vision").holds(11, "n1").measures(kHungry).allocated(12)));
  CHECK(plan_of(plan, "vision").workers == 12);
}

TEST_CASE("a node disappears: the plan asks only for workers with room") {
  const Plan plan =
      plan_for(MakeSnapshot().node("n1", 3000).job(MakeJob("vision").holds(3, "n1").allocated(11).measures(kHungry)));
  CHECK(plan_of(plan, "vision").workers == 3);
  CHECK(plan_of(plan, "vision").victims.empty());
  CHECK(plan_of(plan, "vision").reason == Reason::kCpu);
}

TEST_CASE("a cordoned node keeps its workers and gets no more") {
  const Plan plan = plan_for(MakeSnapshot()
                                 .node("n1", 8000, 0, false)
                                 .node("n2", 2000)
                                 .job(MakeJob("vision").holds(3, "n1").measures(kHungry)));
  CHECK(plan_of(plan, "vision").workers == 5);
  CHECK(plan_of(plan, "vision").new_worker_nodes == std::vector<std::string>{"n2", "n2"});
}

TEST_CASE("jobs of the same name in different namespaces are different jobs, ordered by namespace") {
  Job first = hungry("vision").obj();
  Job second = MakeJob("vision").obj();
  first.id.job_namespace = "b";
  second.id.job_namespace = "a";
  ClusterSnapshot snapshot = MakeSnapshot().node("n1", 16000).obj();
  snapshot.jobs = {first, second};
  const Plan plan = decide(snapshot, {});
  REQUIRE(plan.jobs.size() == 2);
  CHECK(plan.jobs[0].id == second.id);
  CHECK(plan.jobs[0].workers == 0);
  CHECK(plan.jobs[1].workers == 11);
}

TEST_CASE("starving without any known rate gets one worker to measure with, sated none") {
  Measurement starving = kHungry.steady(0, kNowSeconds);
  starving.local.reset();
  Measurement sated = kText.steady(0, kNowSeconds);
  sated.local.reset();
  const Plan plan = plan_for(MakeSnapshot()
                                 .node("n1", 8000)
                                 .job(MakeJob("starving").measures(starving))
                                 .job(MakeJob("sated").measures(sated)));
  CHECK(plan_of(plan, "starving").workers == 1);
  CHECK(plan_of(plan, "starving").reason == Reason::kProbing);
  CHECK(plan_of(plan, "sated").workers == 0);
}

TEST_CASE("a worker that is still starting counts as held: the jump is not repeated") {
  const ClusterSnapshot before = MakeSnapshot().node("n1", 64000).job(hungry("vision")).obj();
  ClusterSnapshot after = applied(before, decide(before, {}));
  for (Worker& worker : after.jobs[0].workers) worker.ready = false;
  after.jobs[0].observation.measurement->window_end_seconds += 5;
  CHECK(decide(after, {}).jobs[0].workers == 11);
}

TEST_CASE("the plan does not depend on what it cannot see: how sharp the knee really is") {
  FluidJob sharp = kHungry;
  sharp.q = 60;
  CHECK(plan_for(MakeSnapshot().node("n1", 64000).job(MakeJob("a").measures(sharp))).jobs[0].workers ==
        plan_for(MakeSnapshot().node("n1", 64000).job(MakeJob("a").measures(kHungry))).jobs[0].workers);
}

TEST_CASE("the granted CPU counts workers with a node, and none that waits for one") {
  // There is a core in sum, but in halves, which are of use to others.
  const MakeSnapshot halves = MakeSnapshot().node("n1", 1000).node("n2", 500).node("n3", 500);
  const MakeJob off = MakeJob("a").mode(Mode::kOff).holds(1, "n1").allocated(2).worker({"pending"});
  const Plan plan = decide(MakeSnapshot(halves).job(off).job(MakeJob("b").worker_millicores(500).max(0)).obj(), {});
  CHECK(plan.jobs[0].workers == 2);
  CHECK(plan.capacity_millicores == 2000);
  CHECK(plan.granted_millicores == 1000);
}

TEST_CASE("a job that names no quota counts against none, not even against one without a name") {
  ClusterSnapshot snapshot =
      MakeSnapshot().node("n1", 64'000).job(MakeJob("a").measures(FluidJob{.demand = 8000})).obj();
  const int free = decide(snapshot, {}).jobs[0].workers;
  snapshot.quotas = {{"", 2000}};
  CHECK(decide(snapshot, {}).jobs[0].workers == free);
}

}  // namespace
}  // namespace sluice::scheduler::testing
