#include "scheduler/allocate/target.h"

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Needs 8 local-equivalent cores and has one: 1.2 * 7 / 0.77 = 10.9 remote ones.
// Needs 8 and has 9.
const FluidJob kNearlyFed{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 9};
// Needs half of its local core.
const FluidJob kOneCoreEnough{.demand = 500, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

Measurement with_wait(Measurement m, double wait_share) {
  m.compute_share = 1 - wait_share;
  m.wait_share = wait_share;
  return m;
}

Measurement with_batches(Measurement m, double batches) {
  m.batches_in_window = batches;
  return m;
}

Measurement without_executors(Measurement m) {
  m.local.reset();
  m.remote.reset();
  return m;
}

TEST_CASE("how many workers a job wants, by situation") {
  const Measurement starved = kHungry.steady(0, kNowSeconds);
  const Measurement sated = with_wait(kHungry.steady(15, kNowSeconds), 0.005);
  const Measurement content = with_wait(kHungry.steady(12, kNowSeconds), 0.03);
  struct Row {
    const char* situation;
    MakeJob job;
    int want_workers;
    Reason want_reason;
  };
  const Row rows[] = {
      {"not started", MakeJob("a").not_running().measures(starved).min(2), 0, Reason::kNotRunning},
      {"finished, workers still there", MakeJob("a").not_running().holds(3, "n1"), 0, Reason::kNotRunning},
      {"mode Off", MakeJob("a").mode(Mode::kOff).holds(3, "n1").max(1).measures(starved), 3, Reason::kModeOff},
      {"placement Local", MakeJob("a").placement(Placement::kLocal).min(2).holds(3, "n1").measures(starved), 0,
       Reason::kPlacementLocal},
      {"no metrics yet", MakeJob("a"), 0, Reason::kNoMetrics},
      {"metrics vanished", MakeJob("a").holds(3, "n1"), 3, Reason::kNoMetrics},
      {"metrics vanished, max lowered", MakeJob("a").holds(3, "n1").max(2), 2, Reason::kMax},
      {"metrics vanished, min raised", MakeJob("a").holds(3, "n1").min(5), 5, Reason::kMin},
      {"metrics gone for ten minutes", MakeJob("a").holds(3, "n1").unmeasured_for(600), 3, Reason::kNoMetrics},
      {"metrics gone for a quarter of an hour", MakeJob("a").holds(3, "n1").unmeasured_for(900), 3,
       Reason::kMetricsFallback},
      {"metrics gone for a day, min binds", MakeJob("a").holds(3, "n1").min(4).unmeasured_for(86400), 4, Reason::kMin},
      {"starved: jump to the need", MakeJob("a").measures(starved), 11, Reason::kNeedMet},
      {"starved, half-core workers", MakeJob("a").worker_millicores(500).measures(starved), 22, Reason::kNeedMet},
      {"starved, eight-core workers", MakeJob("a").worker_millicores(8000).measures(starved), 2, Reason::kNeedMet},
      {"starved: max binds", MakeJob("a").max(4).measures(starved), 4, Reason::kMax},
      {"starved: placement Remote covers local work, too", MakeJob("a").placement(Placement::kRemote).measures(starved),
       13, Reason::kNeedMet},
      {"starved, has more than it should need", MakeJob("a").holds(14, "n1").measures(starved), 14, Reason::kNeedMet},
      {"starved, nothing measured: probe", MakeJob("a").measures(without_executors(starved)), 1, Reason::kProbing},
      {"starved, nothing measured, probing already", MakeJob("a").holds(2, "n1").measures(without_executors(starved)),
       2, Reason::kProbing},
      {"starved, few batches: probe", MakeJob("a").measures(with_batches(starved, 3)), 1, Reason::kProbing},
      {"a noticeable wait over many batches, nothing measured: probe",
       MakeJob("a").measures(with_wait(without_executors(starved), 0.15)), 1, Reason::kProbing},
      {"one late batch among few: no reason to probe", MakeJob("a").measures(with_batches(with_wait(starved, 0.15), 3)),
       0, Reason::kTooFewBatches},
      {"one late batch among few, probing already: hold",
       MakeJob("a").holds(1, "n1").measures(with_batches(with_wait(starved, 0.15), 3)), 1, Reason::kProbing},
      {"content, few batches: hold", MakeJob("a").holds(12, "n1").measures(with_batches(content, 3)), 12,
       Reason::kTooFewBatches},
      {"content: hold", MakeJob("a").holds(12, "n1").measures(content), 12, Reason::kSated},
      {"content with less than the need: hold", MakeJob("a").holds(5, "n1").measures(content), 5, Reason::kSated},
      {"never waits, has less than the need: never grows", MakeJob("a").holds(5, "n1").measures(sated), 5,
       Reason::kSated},
      {"never waits, exactly the need", MakeJob("a").holds(11, "n1").measures(sated), 11, Reason::kNeedMet},
      {"never waits, one too many", MakeJob("a").holds(12, "n1").measures(sated), 11, Reason::kNeedMet},
      {"never waits, many too many: at once", MakeJob("a").holds(60, "n1").measures(sated), 11, Reason::kNeedMet},
      {"never waits, many too many, min binds", MakeJob("a").holds(60, "n1").min(30).measures(sated), 30, Reason::kMin},
      {"waits a little, feeders just meet the demand: hold",
       MakeJob("a").holds(2, "n1").measures(with_wait(kNearlyFed.steady(2, kNowSeconds), 0.03)).local_millicores(9000),
       2, Reason::kSated},
      {"never waits, feeders just meet the demand: try without",
       MakeJob("a").holds(2, "n1").measures(with_wait(kNearlyFed.steady(2, kNowSeconds), 0.005)).local_millicores(9000),
       0, Reason::kNotDataBound},
      {"waits a little, feeders more than meet the demand",
       MakeJob("a").holds(2, "n1").measures(with_wait(kNearlyFed.steady(2, kNowSeconds), 0.03)).local_millicores(9700),
       0, Reason::kNotDataBound},
      {"language model", MakeJob("a").measures(kOneCoreEnough), 0, Reason::kNotDataBound},
      {"language model with workers", MakeJob("a").holds(2, "n1").measures(kOneCoreEnough.steady(0, kNowSeconds)), 0,
       Reason::kNotDataBound},
      {"content without a worker: none is held", MakeJob("a").measures(with_wait(kHungry.steady(0, kNowSeconds), 0.03)),
       0, Reason::kNotDataBound},
      {"language model, min binds", MakeJob("a").min(1).measures(kOneCoreEnough), 1, Reason::kMin},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Job& job = row.job.obj();
    // The wait shares above are set by hand; the local core is busy in all of them.
    Config config;
    config.feedback_raise = config.feedback_raise_most = config.feedback_lower = 1;
    const Target target = target_of(job, estimate_of(job, kNowSeconds, config), config);
    CHECK(target.workers == row.want_workers);
    CHECK(to_string(target.reason) == to_string(row.want_reason));
  }
}

TEST_CASE("workers are held without metrics and in mode Off, and compete otherwise") {
  const Config config;
  const auto held = [&](const MakeJob& job) {
    return target_of(job.obj(), estimate_of(job.obj(), kNowSeconds, config), config).is_held();
  };
  CHECK(held(MakeJob("a").holds(2, "n1")));
  CHECK(held(MakeJob("a").holds(2, "n1").mode(Mode::kOff).measures(kHungry)));
  CHECK_FALSE(held(MakeJob("a").holds(2, "n1").measures(kHungry)));
  CHECK_FALSE(held(MakeJob("a").holds(2, "n1").not_running()));
  CHECK_FALSE(held(MakeJob("a").holds(2, "n1").placement(Placement::kLocal)));
}

TEST_CASE(
    "where the plan sets the feeders as well, too few batches to know anything by: what it holds, whatever it is") {
  struct Row {
    int holds, max;
    int want_workers;
    Reason want_reason;
  };
  for (const Row& row :
       {Row{3, 100, 3, Reason::kTooFewBatches}, Row{0, 100, 0, Reason::kTooFewBatches}, Row{3, 2, 2, Reason::kMax}}) {
    CAPTURE(row.holds, row.max);
    Job job = MakeJob("a").max(row.max).holds(row.holds, "n1").obj();
    job.observation.measurement = with_batches(kHungry.steady(row.holds, kNowSeconds), 3);
    job.local_adjustable = true;
    const Target target = target_of(job, estimate_of(job, kNowSeconds, {}), {});
    CHECK(target.is_held());
    CHECK(target.workers == row.want_workers);
    CHECK(to_string(target.reason) == to_string(row.want_reason));
  }
}

TEST_CASE("where the plan sets the feeders as well: up to which supply, by how long the trainer waits") {
  // Eight local cores for a need of eight; every worker adds a tenth of the need.
  const FluidJob fluid{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 8};
  struct Row {
    const char* situation;
    double wait_share;
    int holds;
    bool want_held;  // else up to where the curve is flat
    Reason want_reason;
  };
  const Row rows[] = {
      {"it waits, with next to nothing", 0.2, 0, false, Reason::kNeedMet},
      {"it waits, and has more than should do: the rest is the knee's to correct", 0.2, 10, false, Reason::kNeedMet},
      {"it waits a little, and has less than the flat part", 0.03, 2, false, Reason::kNeedMet},
      {"it waits a little, and has more: left in peace", 0.03, 10, true, Reason::kSated},
      {"it never waits, and has less: not more than it has", 0.005, 2, true, Reason::kSated},
      {"it never waits, and has more: the surplus goes", 0.005, 10, false, Reason::kNeedMet},
  };
  Config config;
  config.feedback_raise = config.feedback_raise_most = config.feedback_lower = 1;
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = MakeJob("a").local_millicores(8000).holds(row.holds, "n1").obj();
    job.local_adjustable = true;
    job.observation.measurement = with_wait(fluid.steady(row.holds, kNowSeconds), row.wait_share);
    const Estimate estimate = estimate_of(job, kNowSeconds, config);
    const Target target = target_of(job, estimate, config);
    CHECK(target.supply_ratio == Approx(row.want_held ? estimate.held_supply_ratio(job) : 1.355).epsilon(1e-3));
    CHECK(to_string(target.reason) == to_string(row.want_reason));
    CHECK_FALSE(target.is_held());
  }
}

TEST_CASE("a need far above anything seen is approached in bounded steps") {
  // 0.1 cores at work, a need of 120: at most twenty times what was seen.
  const FluidJob tiny{.demand = 100000, .local_rate = 1000, .remote_rate = 770, .local_cores = 0.1};
  const Config config;
  const auto target = [&](const MakeJob& job) {
    return target_of(job.obj(), estimate_of(job.obj(), kNowSeconds, config), config);
  };
  Measurement m = tiny.steady(0, kNowSeconds);
  m.batches_in_window = 50;
  const Target first = target(MakeJob("a").max(1000).local_millicores(100).measures(m));
  CHECK(first.workers == 2);
  CHECK(first.reason == Reason::kExtrapolation);

  m = tiny.steady(2, kNowSeconds);
  const Target second = target(MakeJob("a").max(1000).local_millicores(100).holds(2, "n1").measures(m));
  CHECK(second.workers == 42);

  // With the first two lost, the measurement still speaks for what they did.
  m.remote.reset();
  const Target held = target(MakeJob("a").max(1000).local_millicores(100).holds(10, "n1").measures(m));
  CHECK(held.workers >= 10);
}

TEST_CASE("a few batches that show waiting do not undo what an earlier estimate knew") {
  const Config config;
  Job job = MakeJob("a").measures(kHungry).obj();
  job.memory = estimate_of(job, kNowSeconds, config).memory;
  job.observation.measurement->batches_in_window = 2;
  job.observation.measurement->window_end_seconds += 15;
  const Target target = target_of(job, estimate_of(job, kNowSeconds + 15, config), config);
  CHECK(target.workers == 11);
  CHECK(target.reason == Reason::kNeedMet);
}

TEST_CASE("a few batches without waiting do not take workers away") {
  const Config config;
  Job job = MakeJob("a").holds(40, "n1").measures(kHungry).obj();
  job.memory = estimate_of(job, kNowSeconds, config).memory;
  REQUIRE(target_of(job, estimate_of(job, kNowSeconds, config), config).workers < 40);
  job.observation.measurement->batches_in_window = 2;
  job.observation.measurement->window_end_seconds += 15;
  const Target target = target_of(job, estimate_of(job, kNowSeconds + 15, config), config);
  CHECK(target.workers == 40);
  CHECK(target.reason == Reason::kTooFewBatches);
}

TEST_CASE("a starved job whose executors stood still in the window asks for one worker, not for none") {
  Job job = MakeJob("a").measures(kHungry).obj();
  job.memory = estimate_of(job, kNowSeconds - 30, {}).memory;
  job.observation.measurement = without_executors(kHungry.steady(0, kNowSeconds));
  const Estimate estimate = estimate_of(job, kNowSeconds, {});
  REQUIRE(estimate.known);
  REQUIRE(estimate.busy_cores == 0);
  const Target target = target_of(job, estimate, {});
  CHECK(target.workers == 1);
  CHECK(target.reason == Reason::kExtrapolation);
}

TEST_CASE("a recommendation counts the feeders' CPU as it is, though a plan could set it") {
  Job job = MakeJob("a").mode(Mode::kRecommend).measures(kHungry).obj();
  job.local_adjustable = true;
  const Target target = target_of(job, estimate_of(job, kNowSeconds, {}), {});
  CHECK(target.workers == 11);
  CHECK(target.supply_ratio == 0);
  job.mode = Mode::kAuto;
  CHECK(target_of(job, estimate_of(job, kNowSeconds, {}), {}).supply_ratio > 1);
}

}  // namespace
}  // namespace sluice::scheduler::testing
