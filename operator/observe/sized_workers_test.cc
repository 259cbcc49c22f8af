#include "operator/observe/sized_workers.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using api::WorkerSize;
using nlohmann::json;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = 1024 * kMebibyte;
const scheduler::JobId kVision{"default", "vision"};

// The cluster of seen_cluster.h, whose job leaves the size of its workers to Sluice.
ClusterObjects sized_cluster(int replicas = 2) {
  ClusterObjects objects = cluster();
  json job = training_job();
  job["spec"]["dataWorkers"].erase("resources");
  job["spec"]["dataWorkers"]["autoResources"] = {{"cpu", "1"}, {"maxMemory", "4Gi"}};
  put(objects.training_jobs, job);
  put(objects.pools, pool(replicas));
  if (replicas == 0) {
    objects.pods.erase({"default", "vision-worker-0"});
    objects.pods.erase({"default", "vision-worker-1"});
  }
  return objects;
}

void choose(ClusterObjects& objects, int replicas, const char* cpu, const char* memory) {
  json chosen = pool(replicas);
  chosen["spec"]["workerResources"]["requests"] = {{"cpu", cpu}, {"memory", memory}};
  put(objects.pools, chosen);
}

json sized_worker(const std::string& name, const std::string& memory) {
  json pod = worker(name, "n1");
  pod["spec"]["containers"][0]["name"] = "sluice-worker";
  pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory;
  return pod;
}

json exhausted(json pod, const char* when) {
  pod["status"]["containerStatuses"] = json::array({{{"name", "sluice-worker"}}});
  pod["status"]["containerStatuses"][0][when] = {{"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}}}};
  return pod;
}

struct Seen {
  scheduler::ClusterSnapshot snapshot;
  std::map<scheduler::JobId, SizedWorkers> sized;
};

Seen see(const ClusterObjects& objects, const Observations& observations = {},
         const Circumstances& circumstances = {}) {
  SnapshotBuilder builder;
  Seen seen{builder.build(objects, observations, {}, circumstances, kNow + 60), {}};
  seen.sized = builder.sized_workers();
  return seen;
}

TEST_CASE("workers without a chosen size have the first one") {
  const Seen seen = see(sized_cluster());
  REQUIRE(seen.sized.contains(kVision));
  const SizedWorkers& workers = seen.sized.at(kVision);
  CHECK(workers.job_uid == "uid-vision");
  CHECK(workers.count == 2);
  CHECK_FALSE(workers.chosen.has_value());
  CHECK_FALSE(workers.peak_bytes.has_value());
  CHECK(workers.exhausted_bytes == 0);
  CHECK(workers.ready_seconds == 53);
  CHECK(workers.size == WorkerSize{1000, kGibibyte});
  CHECK(seen.snapshot.jobs[0].worker_millicores == 1000);
  CHECK(seen.snapshot.jobs[0].worker_memory_bytes == kGibibyte);
}

TEST_CASE("the chosen size is in force") {
  ClusterObjects objects = sized_cluster();
  choose(objects, 2, "250m", "2Gi");
  const Seen seen = see(objects);
  CHECK(seen.sized.at(kVision).size == WorkerSize{250, 2 * kGibibyte});
  CHECK(seen.snapshot.jobs[0].worker_millicores == 250);
  CHECK(seen.snapshot.jobs[0].worker_memory_bytes == 2 * kGibibyte);
}

TEST_CASE("while larger workers are replaced, they count with what they hold") {
  ClusterObjects objects = sized_cluster();
  choose(objects, 2, "250m", "512Mi");
  put(objects.pods, sized_worker("vision-worker-0", "3Gi"));
  CHECK(see(objects).snapshot.jobs[0].worker_memory_bytes == 3 * kGibibyte);
}

TEST_CASE("the memory that workers used, and the request of the one that ran out of it") {
  ClusterObjects objects = sized_cluster();
  put(objects.pods, exhausted(sized_worker("vision-worker-0", "256Mi"), "lastState"));
  put(objects.pods, exhausted(sized_worker("vision-worker-1", "512Mi"), "state"));
  Observations observations;
  observations.worker_memory_bytes[kVision] = 3e8;
  const Seen seen = see(objects, observations);
  CHECK(seen.sized.at(kVision).exhausted_bytes == 512 * kMebibyte);
  CHECK(seen.sized.at(kVision).peak_bytes == 3e8);
}

TEST_CASE("a container of others that ran out of memory says nothing of the worker") {
  ClusterObjects objects = sized_cluster();
  json pod = exhausted(sized_worker("vision-worker-0", "256Mi"), "lastState");
  pod["status"]["containerStatuses"][0]["name"] = "mesh-proxy";
  put(objects.pods, pod);
  json failed = exhausted(sized_worker("vision-worker-1", "256Mi"), "lastState");
  failed["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] = "Error";
  put(objects.pods, failed);
  CHECK(see(objects).sized.at(kVision).exhausted_bytes == 0);
}

TEST_CASE("a job that states what its workers get has none of this") { CHECK(see(cluster()).sized.empty()); }

TEST_CASE("the size to begin with, by situation") {
  struct Row {
    const char* situation;
    std::optional<WorkerSize> chosen, learnt;
    std::int64_t room;
    WorkerSize want;
  };
  const Row rows[] = {
      {"nothing is known", {}, {}, 4000, {1000, kGibibyte}},
      {"just enough room", {}, {}, 1000, {1000, kGibibyte}},
      {"a node has half of it free", {}, {}, 999, {500, kGibibyte}},
      {"a quarter", {}, {}, 300, {250, kGibibyte}},
      {"none has anything: as large as it is meant to be", {}, {}, 100, {1000, kGibibyte}},
      {"one like it ran before", {}, WorkerSize{250, 3 * kGibibyte}, 4000, {1000, 3 * kGibibyte}},
      {"it had more than this job may", {}, WorkerSize{1000, 9 * kGibibyte}, 4000, {1000, 4 * kGibibyte}},
      {"the job itself had workers before",
       WorkerSize{500, 2 * kGibibyte},
       WorkerSize{250, 3 * kGibibyte},
       4000,
       {1000, 2 * kGibibyte}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    api::AutoResources bounds;
    bounds.max_memory_bytes = 4 * kGibibyte;
    const WorkerSize size = first_size(bounds, row.chosen, row.learnt, row.room);
    CHECK(size.millicores == row.want.millicores);
    CHECK(size.memory_bytes == row.want.memory_bytes);
  }
}

TEST_CASE("workers are no smaller than a tenth of a core for want of room") {
  api::AutoResources bounds;
  bounds.millicores = 200;
  CHECK(first_size(bounds, {}, {}, 150).millicores == 100);
  CHECK(first_size(bounds, {}, {}, 60).millicores == 200);
}

TEST_CASE("a job without workers begins with the size that a node has room for") {
  ClusterObjects objects = sized_cluster(0);
  choose(objects, 0, "250m", "2Gi");  // of a time when there was less
  CHECK(see(objects).snapshot.jobs[0].worker_millicores == 1000);
  put(objects.pods, pod("large", "n1", "2600m"));  // beside 700m: 700m are left
  const Seen seen = see(objects);
  CHECK(seen.sized.at(kVision).count == 0);
  CHECK(seen.sized.at(kVision).size == WorkerSize{500, 2 * kGibibyte});
  CHECK(seen.snapshot.jobs[0].worker_millicores == 500);
}

TEST_CASE("a job like one that ran before begins with as much CPU, in workers of its own size") {
  Circumstances circumstances;
  circumstances.guess = [](const std::string&) {
    return Guess{{.demand_samples_per_second = 5, .knee_cores = scheduler::Tracked::starting_at(4)},
                 6,
                 WorkerSize{500, 2 * kGibibyte}};
  };
  const Seen seen = see(sized_cluster(0), {}, circumstances);
  CHECK(seen.snapshot.jobs[0].allocated_workers == 3);
  CHECK(seen.sized.at(kVision).size == WorkerSize{1000, 2 * kGibibyte});
}

TEST_CASE("the widest room is what the others, workers and feeders leave of one open node") {
  scheduler::ClusterSnapshot snapshot;
  snapshot.nodes = {{.name = "a", .allocatable_millicores = 4000, .requested_by_others_millicores = 1000},
                    {.name = "b", .allocatable_millicores = 9000, .schedulable = false},
                    {.name = "c", .allocatable_millicores = 9000, .group = 1}};
  scheduler::Job job;
  job.worker_millicores = 500;
  job.closed_groups = {false, true};
  job.workers = {{.name = "w", .node = "a"}};
  job.hosts = {{.node = "a", .request_millicores = 700}};
  snapshot.jobs = {job};
  CHECK(widest_room_millicores(snapshot, job) == 2500);
  snapshot.jobs[0].local_adjustable = true;  // its feeder is not among the others
  CHECK(widest_room_millicores(snapshot, job) == 1800);
  snapshot.nodes.clear();
  CHECK(widest_room_millicores(snapshot, job) == 0);
}

TEST_CASE("the size that Sluice chooses is one that the LimitRange of the namespace allows") {
  const char* const type = GENERATE("Container", "Pod");  // a worker's container is the largest of its pod
  CAPTURE(type);
  ClusterObjects objects = sized_cluster(0);
  const auto set_bounds = [&](json bounds) {
    bounds["type"] = type;
    put(objects.limit_ranges, {{"metadata", {{"name", "team"}, {"namespace", "default"}}},
                               {"spec", {{"limits", json::array({std::move(bounds)})}}}});
  };
  set_bounds(json::parse(R"({"min": {"cpu": "1500m", "memory": "2Gi"}, "maxLimitRequestRatio": {"memory": "1500m"}})"));
  const SizedWorkers first = see(objects).sized.at(kVision);
  CHECK(first.size == WorkerSize{1500, 2 * kGibibyte});
  CHECK(first.refused);  // what the template says, with which no worker would be made
  const api::ContainerResources resources{1500, 2 * kGibibyte, 1500, 3 * kGibibyte};
  CHECK(first.bounds.resources(first.size) == resources);

  json sized = pool(0);
  sized["spec"]["workerResources"] = api::render(resources);
  put(objects.pools, sized);
  CHECK_FALSE(see(objects).sized.at(kVision).refused);

  set_bounds(json::parse(R"({"max": {"cpu": "1", "memory": "1Gi"}})"));
  const SizedWorkers smaller = see(objects).sized.at(kVision);
  CHECK(smaller.refused);
  CHECK(smaller.size == WorkerSize{1000, kGibibyte});
}

}  // namespace
}  // namespace sluice::observe
