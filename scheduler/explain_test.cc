#include "scheduler/explain.h"

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

const FluidJob kVision{.demand = 920, .local_rate = 1250, .remote_rate = 962.5, .local_cores = 0.25};
const FluidJob kText{.demand = 500, .local_rate = 1000, .local_cores = 1};

MakeJob vision() { return MakeJob("vision").worker_millicores(250).measures(kVision); }

JobPlan explained(const MakeJob& job, std::int64_t node_millicores = 64000) {
  return decide(MakeSnapshot().node("n1", node_millicores).job(job).obj(), {}).jobs[0];
}

TEST_CASE("one sentence with the numbers, for every reason") {
  Measurement unmeasured = kVision.steady(0, kNowSeconds);
  unmeasured.local.reset();
  Measurement few = kVision.steady(1, kNowSeconds);
  few.batches_in_window = 3;
  few.wait_share = 0.01;
  const std::string demand = "wants 920 samples/s, which takes 0.736 cores at 1250 samples/s per core";
  struct Row {
    Reason reason;
    JobPlan plan;
    std::string want;
  };
  const Row rows[] = {
      {Reason::kNotRunning, explained(MakeJob("a").not_running()), "Not running: no data workers."},
      {Reason::kModeOff, explained(MakeJob("a").mode(Mode::kOff).holds(1, "n1")), "Mode Off: left at 1 worker."},
      {Reason::kPlacementLocal, explained(MakeJob("a").placement(Placement::kLocal)),
       "Placement Local: all data work stays in the trainer's pods."},
      {Reason::kNoMetrics, explained(MakeJob("a").holds(2, "n1").misses("Prometheus is away")),
       "Holding 2 workers: Prometheus is away."},
      {Reason::kTooFewBatches, explained(MakeJob("a").holds(2, "n1").measures(few)),
       "Holding 2 workers: too few batches in the metrics window to estimate from."},
      {Reason::kProbing, explained(MakeJob("a").measures(unmeasured)),
       "The trainer waits 66 % of its time for data, and no executor has been measured yet: 1 worker to measure with."},
      {Reason::kNotDataBound, explained(MakeJob("a").measures(kText)),
       "The trainer waits 0 % of its time for data: not data-bound, so no data workers."},
      {Reason::kNeedMet, explained(vision()),
       "The trainer waits 66 % of its time for data; it " + demand +
           ", 4 workers of 250m bring supply to 139 % of that, one more would bring 1 %."},
      {Reason::kMax, explained(vision().max(1)),
       "max limits it to 1 worker; it " + demand +
           ", 1 worker of 250m brings supply to 60 % of that, one more would bring 37 %."},
      {Reason::kMin, explained(vision().min(9)),
       "min holds it at 9 workers; it " + demand +
           ", 9 workers of 250m bring supply to 269 % of that, one more would bring 0 %."},
      {Reason::kCpu, explained(vision(), 400),
       "No node has room for more than 1 worker; it " + demand +
           ", 1 worker of 250m brings supply to 60 % of that, one more would bring 37 %."},
  };
  for (const Row& row : rows) {
    CHECK(to_string(row.plan.reason) == to_string(row.reason));
    CHECK(row.plan.explanation == row.want);
  }
}

TEST_CASE("a sated job is told that its workers stay") {
  Measurement m = kVision.steady(1, kNowSeconds);
  m.wait_share = 0.03;
  m.compute_share = 0.97;
  CHECK_THAT(
      explained(MakeJob("a").worker_millicores(250).local_millicores(250).holds(4, "n1").measures(m)).explanation,
      Catch::StartsWith("The trainer waits 3 % of its time for data: 4 workers stay; it wants "));
}

TEST_CASE("a bounded first step is told as one") {
  const FluidJob huge{.demand = 100000, .local_rate = 1000, .local_cores = 0.1};
  CHECK_THAT(
      explained(MakeJob("a").measures(huge)).explanation,
      Catch::Contains("needs far more than was ever measured: a first step to 2 workers; it wants 100000 samples/s"));
}

TEST_CASE("figures: what is ready now, and what the plan will bring") {
  MakeJob job = vision().holds(1, "n1").worker({"starting", "n1", false, kNowSeconds, 0, false}).allocated(2);
  job.measures(kVision.steady(0.25, kNowSeconds));
  const JobPlan plan = explained(job.local_millicores(250));
  CHECK(plan.estimate.demand_samples_per_second == Approx(920));
  CHECK(plan.estimate.local_rate_per_core == Approx(1250));
  CHECK(plan.estimate.remote_rate_per_core == Approx(962.5));
  CHECK(plan.estimate.knee_millicores == 736);
  CHECK(plan.estimate.supply_ratio == Approx((0.25 + 0.77 * 0.25) / 0.736).epsilon(0.02));
  CHECK(plan.estimate.planned_supply_ratio == Approx((0.25 + 0.77 * 0.25 * plan.workers) / 0.736).epsilon(0.02));
  CHECK(plan.estimate.confidence == Confidence::kMeasured);
}

TEST_CASE("without an estimate no figure is made up") {
  const JobPlan plan = explained(MakeJob("a"));
  CHECK(plan.estimate.confidence == Confidence::kNone);
  CHECK(plan.estimate.knee_millicores == 0);
  CHECK(plan.next_worker_gain_percent == 0);
}

TEST_CASE("the bottleneck is named only where it was decided") {
  Measurement idle_executors = kVision.steady(0, kNowSeconds);
  idle_executors.local = SourceRate{312, 0.05};
  Measurement no_executors = kVision.steady(0, kNowSeconds);
  no_executors.local.reset();
  struct Row {
    const char* situation;
    MakeJob job;
    Bottleneck want;
  };
  const Row rows[] = {
      {"starved, CPU used up", vision(), Bottleneck::kDataBoundCpu},
      {"starved, CPU idle: waits for storage or network", vision().measures(idle_executors),
       Bottleneck::kDataBoundOther},
      {"starved, executors not measured", vision().measures(no_executors), Bottleneck::kUnknown},
      {"practically never waits", MakeJob("a").measures(kText), Bottleneck::kGpuBound},
      {"no metrics", MakeJob("a"), Bottleneck::kUnknown},
      {"not running", MakeJob("a").not_running().measures(kText), Bottleneck::kUnknown},
      // Eight workers that have just become ready must not make the used-up core look idle.
      {"starved, more CPU on its way", vision().worker({"w", "n1", true, kNowSeconds - 5, kNowSeconds - 1, false}),
       Bottleneck::kDataBoundCpu},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(to_string(explained(row.job).bottleneck) == to_string(row.want));
  }
}

TEST_CASE("every name is the enumerator's") {
  CHECK(to_string(Confidence::kNone) == "None");
  CHECK(to_string(Confidence::kAssumed) == "Assumed");
  CHECK(to_string(Confidence::kMeasured) == "Measured");
  CHECK(to_string(Bottleneck::kUnknown) == "Unknown");
  CHECK(to_string(Bottleneck::kNotDataBound) == "NotDataBound");
  CHECK(to_string(Bottleneck::kDataBoundCpu) == "DataBoundCpu");
  CHECK(to_string(Bottleneck::kDataBoundOther) == "DataBoundOther");
  CHECK(to_string(Reason::kTooFewBatches) == "TooFewBatches");
  CHECK(to_string(Reason::kExtrapolation) == "Extrapolation");
  CHECK(to_string(Reason::kSated) == "Sated");
}

}  // namespace
}  // namespace sluice::scheduler::testing
