#include "scheduler/decide/explain.h"

#include "scheduler/estimate/estimator.h"
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

TEST_CASE("the sentence says how many workers have the job's data on their node, where that is known") {
  const auto explanation = [](const MakeJob& job) {
    return decide(MakeSnapshot().node("n1", 500).node("n2", 64'000).job(job).obj(), {}).jobs[0].explanation;
  };
  CHECK(explanation(vision()).find("cache") == std::string::npos);
  CHECK(explanation(vision().kept("n1", 2e9).kept("n2", 1e9))
            .find("; 2 of 4 workers are where the node's cache has its data.") != std::string::npos);
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
       "All data work stays in the trainer's pods, by placement Local or because no worker can read the data."},
      {Reason::kNoMetrics, explained(MakeJob("a").holds(2, "n1").misses("Prometheus is away")),
       "Holding 2 workers: Prometheus is away."},
      {Reason::kMetricsFallback,
       explained(MakeJob("a").holds(2, "n1").misses("Prometheus is away").unmeasured_for(901)),
       "Measured jobs go first, and leave it 2 workers: Prometheus is away."},
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
      {Reason::kMax, explained(vision().let_through(1)),
       "A scheduling gate, such as Kueue's, limits it to 1 worker; it " + demand +
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

// A trainer of eight GPUs whose feeders' CPU the plan sets: 8 cores on its host, of the 20 it needs.
Job vision_on_host() {
  Job job = MakeJob("a").gpus(8).obj();
  job.ranks = 8;
  job.local_adjustable = true;
  job.hosts = {{"h", 8, 8, 8000, 8000}};
  job.observation.measurement =
      FluidJob{.demand = 20'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 8}.steady(0, kNowSeconds - 5);
  return job;
}

TEST_CASE("the whole sentence where the plan sets feeders and workers, for every constraint that may bind") {
  struct Row {
    const char* situation;
    void (*set)(ClusterSnapshot&, Job&, Config&);
    std::string want;
  };
  const std::string wants = "; it wants 20000 samples/s, which takes 20 cores at 1000 samples/s per core, ";
  const std::string waits = "The trainer waits 60 % of its time for data";
  const Row rows[] = {
      {"nothing binds", [](ClusterSnapshot&, Job&, Config&) {},
       waits + wants +
           "8 cores beside it and 25 workers of 1000m bring supply to 136 % of that, one more would bring 0 %."},
      {"a quota",
       [](ClusterSnapshot& snapshot, Job& job, Config&) {
         job.quota = "team";
         snapshot.quotas = {{"team", 5000}};
       },
       "Quota team limits it to 5 workers" + wants +
           "8 cores beside it and 5 workers of 1000m bring supply to 59 % of that, one more would bring 6 %."},
      {"a quota of nothing",
       [](ClusterSnapshot& snapshot, Job& job, Config&) {
         job.quota = "team";
         snapshot.quotas = {{"team", 0}};
       },
       "Quota team limits it to 0 workers" + wants +
           "8 cores beside it bring supply to 40 % of that, one more would bring 10 %."},
      {"the budget",
       [](ClusterSnapshot& snapshot, Job&, Config&) {
         snapshot.nodes[1].price_per_hour = 6.4;
         snapshot.budget_per_hour = 0.5;
       },
       "The budget limits it to 5 workers" + wants +
           "8 cores beside it and 5 workers of 1000m bring supply to 59 % of that, one more would bring 6 %."},
      {"the network",
       [](ClusterSnapshot& snapshot, Job& job, Config&) {
         job.bytes_per_sample = 150'000;
         snapshot.nodes[0].network_bytes_per_second = 6e8;
       },
       "The network limits it to 5 workers" + wants +
           "8 cores beside it and 5 workers of 1000m bring supply to 59 % of that, one more would bring 6 %."},
      {"the room", [](ClusterSnapshot& snapshot, Job&, Config&) { snapshot.nodes[1].allocatable_millicores = 5500; },
       "No node has room for more than 5 workers" + wants +
           "8 cores beside it and 5 workers of 1000m bring supply to 59 % of that, one more would bring 6 %."},
      {"max", [](ClusterSnapshot&, Job& job, Config&) { job.max_workers = 1; },
       "max limits it to 1 worker" + wants +
           "8 cores beside it and 1 worker of 1000m bring supply to 44 % of that, one more would bring 9 %."},
      {"what has been tried",
       [](ClusterSnapshot&, Job& job, Config&) {
         job.memory = estimate_of(job, kNowSeconds, {}).memory;
         job.memory->useless_above_cores = 5;
         job.memory->useless_since_seconds = kNowSeconds - 100;
       },
       "More workers were tried and brought no speed: 5 workers stay" + wants +
           "8 cores beside it and 5 workers of 1000m bring supply to 59 % of that, one more would bring 6 %."},
      {"its price",
       [](ClusterSnapshot&, Job&, Config& config) {
         config.objective = Objective::kCost;
         config.core_hours_per_gpu_hour = 0.1;
       },
       "More than 1 worker would not be worth the price" + wants +
           "8 cores beside it and 1 worker of 1000m bring supply to 44 % of that, one more would bring 9 %."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = vision_on_host();
    Config config;
    ClusterSnapshot snapshot{
        kNowSeconds,
        {{.name = "h", .allocatable_millicores = 8000, .gpus = 8}, {.name = "n", .allocatable_millicores = 64'000}},
        {},
        {},
        {}};
    row.set(snapshot, job, config);
    snapshot.jobs = {job};
    CHECK(decide(snapshot, config).jobs[0].explanation == row.want);
  }
}

TEST_CASE("the whole sentence for a job that does not run, and for one in mode Recommend") {
  CHECK(explained(MakeJob("a").not_running().mode(Mode::kRecommend)).explanation == "Not running: no data workers.");

  const std::string advice = explained(vision().mode(Mode::kRecommend).holds(2, "n1").allocated(2)).explanation;
  CHECK(
      advice ==
      "Recommends 4 workers (has 2). The trainer waits 66 % of its time for data; it wants 920 samples/s, which takes "
      "0.736 cores at 1250 samples/s per core, 4 workers of 250m bring supply to 139 % of that, one more would bring "
      "1 %.");
  CHECK(explained(MakeJob("a").measures(kText).mode(Mode::kRecommend).min(1)).explanation ==
        "Recommends 1 worker (has 0). min holds it at 1 worker; it wants 500 samples/s, which takes 0.5 cores at 1000 "
        "samples/s per core, 1 worker of 1000m brings supply to 353 % of that, one more would bring 0 %.");
  CHECK(explained(vision().max(0)).explanation ==
        "max limits it to 0 workers; it wants 920 samples/s, which takes 0.736 cores at 1250 samples/s per core, "
        "without workers supply is 34 % of that, one more would bring 76 %.");
}

TEST_CASE("min holds a job of which nothing is known, and no figure is made up for the sentence") {
  CHECK(explained(MakeJob("a").min(2)).explanation == "min holds it at 2 workers.");
}

TEST_CASE("present supply counts ready workers, whether or not the plan sets the feeders' CPU") {
  Job job = vision_on_host();
  job.workers = {{"ready", "n", true, kNowSeconds - 500, kNowSeconds - 400, false},
                 {"starting", "n", false, kNowSeconds - 5, kNowSeconds + 5, false},
                 {"later", "n", true, kNowSeconds - 5, kNowSeconds + 5, false}};
  job.allocated_workers = 3;
  const ClusterSnapshot snapshot{
      kNowSeconds,
      {{.name = "h", .allocatable_millicores = 8000, .gpus = 8}, {.name = "n", .allocatable_millicores = 64'000}},
      {job},
      {},
      {}};
  CHECK(decide(snapshot, {}).jobs[0].supply_ratio == Approx((8 + 0.77) / 20).epsilon(0.001));
  ClusterSnapshot idle = snapshot;
  idle.jobs[0].observation.measurement->local = SourceRate{2000, 2};
  idle.jobs[0].workers.clear();
  CHECK(decide(idle, {}).jobs[0].supply_ratio == Approx(8.0 / 20).epsilon(0.001));
}

TEST_CASE("a job that its storage holds up is told so, and what helps") {
  Measurement idle = kVision.steady(0, kNowSeconds);
  idle.local = SourceRate{312, 0.05};
  Measurement reading = idle;
  reading.blocked_threads = 3;
  const std::string storage =
      "What helps: a cache on its nodes (`cache.enabled` in the chart's values), a copy of the data nearby, or faster "
      "storage.";
  struct Row {
    const char* situation;
    MakeJob job;
    std::string want;  // at the end
  };
  const Row rows[] = {
      {"CPU does", vision(), "one more would bring 1 %."},
      {"executors are blocked in reads", vision().measures(reading),
       ". It is held up by its storage: waits 66 %; 0.05 of 0.25 cores at work; 3 threads "
       "blocked in reads. " +
           storage},
      {"nothing that is measured", vision().measures(idle), "one more would bring 1 %."},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK_THAT(explained(row.job).explanation, Catch::EndsWith(row.want));
  }
}

TEST_CASE("how long a job has not been measured") {
  CHECK(explained(MakeJob("a").unmeasured_for(321)).estimate.unmeasured_seconds == 321);
  CHECK(explained(MakeJob("a").unmeasured_for(321).measures(kText)).estimate.unmeasured_seconds == 0);
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

TEST_CASE("figures: supply with the ready workers, and once the plan is carried out") {
  MakeJob job = vision().holds(1, "n1").worker({"starting", "n1", false, kNowSeconds, 0, false}).allocated(2);
  job.measures(kVision.steady(0.25, kNowSeconds));
  const JobPlan plan = explained(job.local_millicores(250));
  CHECK(plan.estimate.demand_samples_per_second == Approx(920));
  CHECK(plan.estimate.local_rate_per_core == Approx(1250));
  CHECK(plan.estimate.remote_rate_per_core == Approx(962.5));
  CHECK(plan.estimate.knee_cores == Approx(0.736));
  CHECK(plan.supply_ratio == Approx((0.25 + 0.77 * 0.25) / 0.736).epsilon(0.02));
  CHECK(plan.planned_supply_ratio == Approx((0.25 + 0.77 * 0.25 * plan.workers) / 0.736).epsilon(0.02));
  CHECK(plan.estimate.confidence == Confidence::kMeasured);
}

TEST_CASE("without an estimate no figure is made up") {
  const JobPlan plan = explained(MakeJob("a"));
  CHECK(plan.estimate.confidence == Confidence::kNone);
  CHECK(plan.estimate.knee_cores == 0);
  CHECK(plan.supply_ratio == 0);
  CHECK(plan.planned_supply_ratio == 0);
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
  const std::pair<Bottleneck, const char*> bottlenecks[] = {
      {Bottleneck::kUnknown, "Unknown"},
      {Bottleneck::kNotDataBound, "NotDataBound"},
      {Bottleneck::kGpuBound, "GpuBound"},
      {Bottleneck::kDataBoundCpu, "DataBoundCpu"},
      {Bottleneck::kDataBoundStorage, "DataBoundStorage"},
      {Bottleneck::kDataBoundNetwork, "DataBoundNetwork"},
      {Bottleneck::kDataBoundOther, "DataBoundOther"},
  };
  for (const auto& [bottleneck, name] : bottlenecks) CHECK(to_string(bottleneck) == name);
  const std::pair<Reason, const char*> reasons[] = {
      {Reason::kNotRunning, "NotRunning"},
      {Reason::kModeOff, "ModeOff"},
      {Reason::kPlacementLocal, "PlacementLocal"},
      {Reason::kNoMetrics, "NoMetrics"},
      {Reason::kMetricsFallback, "MetricsFallback"},
      {Reason::kTooFewBatches, "TooFewBatches"},
      {Reason::kProbing, "Probing"},
      {Reason::kNotDataBound, "NotDataBound"},
      {Reason::kNeedMet, "NeedMet"},
      {Reason::kSated, "Sated"},
      {Reason::kExtrapolation, "Extrapolation"},
      {Reason::kMin, "Min"},
      {Reason::kMax, "Max"},
      {Reason::kCpu, "Cpu"},
      {Reason::kNoEffect, "NoEffect"},
      {Reason::kStorage, "Storage"},
      {Reason::kQuota, "Quota"},
      {Reason::kBudget, "Budget"},
      {Reason::kNetwork, "Network"},
      {Reason::kSpread, "Spread"},
      {Reason::kFlat, "Flat"},
  };
  for (const auto& [reason, name] : reasons) CHECK(to_string(reason) == name);
}

}  // namespace
}  // namespace sluice::scheduler::testing
