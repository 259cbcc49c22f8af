// What jobs read from a shared storage, and how it is shared.
#include "scheduler/simulator/testing/worlds.h"
#include "scheduler/simulator/world/supply.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

TEST_CASE("Later epochs read from the cache what the first one brought") {
  JobSpec spec = testing::job(0, 4, 100, 10, 2);
  JobState job;
  job.spec = &spec;
  Cluster cluster;
  cluster.physics.storage_share_of_network = 0.25;
  cluster.physics.cached_after_first_epoch = 0.9;
  CHECK(storage_need_gbps(job, cluster) == Approx(2));
  job.epoch = 1;
  CHECK(storage_need_gbps(job, cluster) == Approx(0.2));
}

// 4 Gb/s at full speed: 5 epochs of 100 GB in 1000 s.
Workload readers(int jobs) {
  Workload workload(jobs, testing::job(0, 4, 1000, 0.1));
  for (JobSpec& job : workload) job.data_set = 0, job.epochs = 5;
  return workload;
}

Cluster with_data(double storage_gbps, CacheRule rule, double cache_gigabytes) {
  Cluster cluster = testing::small_cluster();
  cluster.physics.storage_gbps = storage_gbps;
  cluster.data_sets = {{"photos", 100}};
  cluster.cache = {cache_gigabytes, rule};
  return cluster;
}

TEST_CASE("A job with a data set takes as long as the storage needs for what the cache does not have") {
  struct Row {
    const char* situation;
    CacheRule rule;
    double cache_gigabytes, storage_gbps;
    double want_seconds, want_fetched_gigabytes;
  };
  const double half = progress(0.5, 6), quarter = progress(0.25, 6);
  const Row rows[] = {
      {"enough storage", CacheRule::kNone, 0, 8, 1000, 500},
      {"half of it", CacheRule::kNone, 0, 2, 1000 / half, 500},
      {"all is cached after the first epoch", CacheRule::kKeep, 100, 2, 200 / half + 800, 100},
      {"half is cached, and a quarter of the storage there", CacheRule::kKeep, 50, 1, 200 / quarter + 800 / half, 300},
      {"the page cache holds half and has a seventh", CacheRule::kLru, 50, 1, 200 / quarter + 800 / (0.25 / 0.847),
       100 + 400 * 0.847},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const RunRecord record = testing::run(with_data(row.storage_gbps, row.rule, row.cache_gigabytes), readers(1));
    CHECK(record.jobs[0].finish_seconds == Approx(row.want_seconds).epsilon(0.02));
    CHECK(record.jobs[0].reads.gigabytes == Approx(500));
    CHECK(record.jobs[0].reads.fetched_gigabytes == Approx(row.want_fetched_gigabytes).epsilon(0.02));
    CHECK(record.cache == row.rule);
  }
}

TEST_CASE("Jobs of one data set share what is cached of it, and the storage delivers no more than it can") {
  const Workload four = readers(4);
  const auto makespan = [&](CacheRule rule) {
    const RunRecord record = testing::run(with_data(2, rule, 40), four);
    double fetched = 0;
    for (const JobRecord& job : record.jobs) fetched += job.reads.fetched_gigabytes;
    CHECK(record.makespan_seconds >= 8 * fetched / 2);
    CHECK(record.makespan_seconds <= 1.03 * 8 * fetched / 2);  // it is what limits them
    return record.makespan_seconds;
  };
  const double ours = makespan(CacheRule::kReuseDistance);
  CHECK(makespan(CacheRule::kNone) >= 2 * ours);
  CHECK(makespan(CacheRule::kLru) >= 1.5 * ours);
}

TEST_CASE("A trainer that fails reads its epoch again from the checkpoint on") {
  Cluster cluster = with_data(0, CacheRule::kKeep, 0);
  cluster.physics.checkpoint_seconds = 300;
  const RunRecord record =
      testing::run(cluster, readers(1), nullptr, testing::with({{IncidentKind::kNodeDown, "gpu-0", 550, 10}}));
  CHECK(record.jobs[0].restarts == 1);
  // 250 s of work at 4 Gb/s, and the rest of the block in which it failed.
  CHECK(record.jobs[0].reads.gigabytes == Approx(500 + 125).margin(3));
}

}  // namespace
}  // namespace sluice::simulator
