// What jobs read from a storage that they share, and the CPU that finds nothing to read there.
#include <random>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

constexpr double kSampleBytes = 1000;
constexpr double kOfOwnCore = 1000 * kSampleBytes;  // bytes/s that its feeder's core reads for a job
constexpr double kOfWorker = 770 * kSampleBytes;    // the same of a data worker

// Starved with its own core; it would take eleven workers.
Job reader(const std::string& name, std::optional<double> bytes = kSampleBytes, int workers = 0) {
  Job job = MakeJob(name).holds(workers, "n").measures(kHungry).obj();
  job.storage = "nas";
  job.observation.measurement->read_bytes_per_sample = bytes;
  return job;
}

Job elsewhere(Job job, const std::string& storage) {
  job.storage = storage;
  return job;
}

Job left_alone(Job job) {
  job.mode = Mode::kOff;
  return job;
}

Plan planned(std::vector<Job> jobs, double bytes_per_second, double overbooking = 0) {
  ClusterSnapshot snapshot{kNowSeconds, {{.name = "n", .allocatable_millicores = 64'000}}, std::move(jobs), {}, {}};
  snapshot.storages = {{"nas", bytes_per_second}, {"other", 0}};
  Config config;
  config.storage_overbooking = overbooking;
  const Plan plan = decide(snapshot, config);
  CHECK(broken_rules(snapshot, plan).empty());
  return plan;
}

TEST_CASE("workers of the first job, by what the storage gives and other jobs read") {
  struct Row {
    const char* situation;
    std::vector<Job> jobs;
    double bytes_per_second;
    int want_workers;
    Reason want_reason;
  };
  const Row rows[] = {
      {"alone, and the storage has reads for three and a half",
       {reader("a")},
       kOfOwnCore + 3.5 * kOfWorker,
       3,
       Reason::kStorage},
      {"alone, and more than it can read", {reader("a")}, 9 * kOfOwnCore, 11, Reason::kNeedMet},
      {"the feeders' cores read it all", {reader("a"), reader("b")}, 1.5 * kOfOwnCore, 0, Reason::kStorage},
      {"the neighbour's own core reads first",
       {reader("a"), elsewhere(reader("b"), "nas")},
       2 * kOfOwnCore + 1.5 * kOfWorker,
       1,
       Reason::kStorage},
      {"workers that stay by order read first",
       {reader("a"), left_alone(reader("b", kSampleBytes, 4))},
       2 * kOfOwnCore + 5.5 * kOfWorker,
       1,
       Reason::kStorage},
      {"workers that it holds go when there is nothing to read for them",
       {reader("a", kSampleBytes, 5)},
       kOfOwnCore + 2.5 * kOfWorker,
       2,
       Reason::kStorage},
      {"a minimum finds no reads either",
       {[] {
         Job job = reader("a");
         job.min_workers = 2;
         return job;
       }()},
       kOfOwnCore,
       0,
       Reason::kStorage},
      {"the neighbour reads from another storage",
       {reader("a"), elsewhere(reader("b"), "other")},
       kOfOwnCore + 3.5 * kOfWorker,
       3,
       Reason::kStorage},
      {"its caches serve it", {reader("a", 0), reader("b")}, kOfOwnCore, 11, Reason::kNeedMet},
      {"its reads are not measured", {reader("a", std::nullopt)}, 0, 11, Reason::kNeedMet},
      {"its reads are no number", {reader("a", -1)}, 0, 11, Reason::kNeedMet},
      {"it names a storage that nothing is known of", {elsewhere(reader("a"), "tape")}, 0, 11, Reason::kNeedMet},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const JobPlan plan = plan_of(planned(row.jobs, row.bytes_per_second), "a");
    CHECK(plan.workers == row.want_workers);
    CHECK(plan.reason == row.want_reason);
  }
}

TEST_CASE("growth is promised a part of the bandwidth beyond it, even where others read all of it") {
  constexpr double kWorkers = 20;  // so much bandwidth that a tenth of it is two workers'
  struct Row {
    const char* situation;
    double overbooking;
    int want_workers;
  };
  const Row rows[] = {{"none", 0, 0}, {"one worker's", 0.05, 1}, {"two workers'", 0.1, 2}, {"almost", 0.099, 1}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Plan plan =
        planned({reader("a"), left_alone(reader("b", 20 * kSampleBytes, 11))}, kWorkers * kOfWorker, row.overbooking);
    CHECK(plan_of(plan, "a").workers == row.want_workers);
    CHECK(plan_of(plan, "a").reason == Reason::kStorage);
  }
}

TEST_CASE("advice counts the reads that other jobs leave") {
  Job advised = reader("a");
  advised.mode = Mode::kRecommend;
  constexpr double kBandwidth = 2 * kOfOwnCore + 3.5 * kOfWorker;
  CHECK(plan_of(planned({advised}, kBandwidth - kOfOwnCore), "a").recommended == 3);
  const Plan shared = planned({advised, reader("b")}, kBandwidth);
  CHECK(plan_of(shared, "b").workers == 3);
  CHECK(plan_of(shared, "a").recommended == 0);
}

TEST_CASE("the explanation names the storage, and no other job") {
  const Plan plan = planned({reader("a"), reader("b")}, 1.5 * kOfOwnCore);
  const std::string& said = plan_of(plan, "a").explanation;
  CHECK(said.starts_with("Storage nas limits it to 0 workers: other jobs have the rest of its bandwidth"));
  CHECK(said.find("What helps: a cache on its nodes") != std::string::npos);
}

TEST_CASE("feeders grow as far as their reads go, and get no idle CPU beyond that") {
  Job job = reader("a");
  job.gpus = job.ranks = 1;
  job.local_adjustable = true;
  job.hosts = {{"n", 1, 1, 1000, 64'000}};
  job.observation.measurement->local = SourceRate{1000, 1};
  job.max_workers = 0;
  ClusterSnapshot snapshot{kNowSeconds, {{.name = "n", .allocatable_millicores = 64'000, .gpus = 64}}, {job}, {}, {}};
  CHECK(decide(snapshot, kConfig).jobs[0].local[0].request_millicores == Approx(10'840).margin(10));
  snapshot.storages = {{"nas", 1.5 * kOfOwnCore}};
  Config config;
  config.storage_overbooking = 0;
  const LocalCpu bounded = decide(snapshot, config).jobs[0].local[0];
  CHECK(bounded.request_millicores == Approx(1500).margin(10));
  CHECK(bounded.limit_millicores == bounded.request_millicores);
}

// All that clusters can have.
ClusterSnapshot any_cluster(unsigned seed) {
  ClusterSnapshot snapshot = random_cluster(seed, everything());
  for (Job& job : snapshot.jobs)
    if (job.observation.measurement) job.observation.measurement->read_bytes_per_sample = kSampleBytes;
  return snapshot;
}

TEST_CASE("a storage that no job reads, or that has enough for all, changes nothing") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const ClusterSnapshot plain = any_cluster(seed);
    ClusterSnapshot unread = plain, plenty = plain, unknown = plain;
    unread.storages = {{"nas", 0}};
    plenty.storages = {{"nas", 1e15}};
    for (Job& job : plenty.jobs) job.storage = "nas";
    for (Job& job : unknown.jobs) job.storage = "nas";
    const std::string want = text_of(decide(plain, kConfig));
    CHECK(text_of(decide(unread, kConfig)) == want);
    CHECK(text_of(decide(plenty, kConfig)) == want);
    CHECK(text_of(decide(unknown, kConfig)) == want);
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
