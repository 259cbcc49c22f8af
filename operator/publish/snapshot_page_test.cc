#include "operator/publish/snapshot_page.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::control {
namespace {

using nlohmann::json;
using scheduler::testing::MakeJob;
using scheduler::testing::MakeSnapshot;

json told(const scheduler::ClusterSnapshot& snapshot) { return json::parse(snapshot_text(snapshot)); }

json told(const scheduler::Job& job) {
  scheduler::ClusterSnapshot snapshot;
  snapshot.jobs.push_back(job);
  return told(snapshot)["jobs"][0];
}

TEST_CASE("the cluster itself, with its bounds") {
  scheduler::ClusterSnapshot snapshot;
  snapshot.taken_at_seconds = 1000.5;
  snapshot.quotas = {{.name = "team", .worker_millicores = 1500, .budget_per_hour = 2.5}, {.name = "free"}};
  snapshot.storages = {{"nas", 7.5e8}};
  CHECK(told(snapshot) == json::parse(R"({"takenAtSeconds": 1000.5, "nodes": [], "jobs": [],
      "quotas": [{"name": "team", "workerMillicores": 1500, "budgetPerHour": 2.5}, {"name": "free"}],
      "storages": [{"name": "nas", "bytesPerSecond": 7.5e8}]})"));
  snapshot.budget_per_hour = 12;
  CHECK(told(snapshot)["budgetPerHour"] == 12);
}

TEST_CASE("a node with all that can be known of it, and one of which little is known") {
  scheduler::ClusterSnapshot snapshot;
  snapshot.nodes = {{.name = "a",
                     .allocatable_millicores = 4000,
                     .requested_by_others_millicores = 250,
                     .schedulable = false,
                     .group = 3,
                     .domains = {1, scheduler::kNoDomain},
                     .gpus = 2,
                     .free_memory_bytes = 1 << 30,
                     .network_bytes_per_second = 1.25e9,
                     .price_per_hour = 0.5,
                     .spot = true},
                    {.name = "b"}};
  const json nodes = told(snapshot)["nodes"];
  CHECK(nodes[0] == json::parse(R"({"name": "a", "allocatableMillicores": 4000, "requestedByOthersMillicores": 250,
      "schedulable": false, "group": 3, "domains": [1, null], "gpus": 2, "freeMemoryBytes": 1073741824,
      "networkBytesPerSecond": 1.25e9, "pricePerHour": 0.5, "spot": true})"));
  for (const char* unknown : {"freeMemoryBytes", "networkBytesPerSecond"}) CHECK_FALSE(nodes[1].contains(unknown));
  CHECK(nodes[1]["pricePerHour"] == 0);
}

TEST_CASE("what a job asks for, and what bounds it") {
  scheduler::Job job =
      MakeJob("vision").gpus(2).weight(300).priority(5).min(1).let_through(4).worker_millicores(500).obj();
  job.quota = "default";
  job.storage = "nas";
  job.ranks = 2;
  job.mode = scheduler::Mode::kRecommend;
  job.placement = scheduler::Placement::kRemote;
  job.worker_memory_bytes = 1000;
  job.closed_groups = {false, true, false, true};
  job.spread = {{.topology = 1, .most_ahead = 2, .counted_domains = {true, false, true}, .closed_outside = true}};
  job.kept = {{"a", 1.5e9}};
  job.hosts = {{.node = "a", .ranks = 2, .gpus = 2, .request_millicores = 300, .limit_millicores = 400}};
  job.local_adjustable = true;
  job.allocated_workers = 3;
  const json seen = told(job);
  CHECK(seen ==
        json::parse(
            R"({"id": {"namespace": "default", "name": "vision"}, "running": true, "quota": "default", "storage": "nas",
      "ranks": 2, "gpus": 2, "weight": 300, "priority": 5, "mode": "Recommend", "placement": "Remote", "minWorkers": 1,
      "maxWorkers": 4, "heldAtGate": true, "workerMillicores": 500, "workerMemoryBytes": 1000, "closedGroups": [1, 3],
      "spread": [{"topology": 1, "mostAhead": 2, "countedDomains": [0, 2], "closedOutside": true}], "kept": [{"node": "a", "bytes": 1.5e9}],
      "hosts": [{"node": "a", "ranks": 2, "gpus": 2, "requestMillicores": 300, "limitMillicores": 400}],
      "localAdjustable": true, "allocatedWorkers": 3, "workers": [],
      "observation": {"missingReason": "no metrics"}})"));
}

TEST_CASE("modes and placements are called as in a TrainingJob") {
  using scheduler::Mode;
  using scheduler::Placement;
  for (const auto& [mode, name] :
       {std::pair(Mode::kAuto, "Auto"), std::pair(Mode::kRecommend, "Recommend"), std::pair(Mode::kOff, "Off")})
    CHECK(told(MakeJob("a").mode(mode).obj())["mode"] == name);
  for (const auto& [placement, name] : {std::pair(Placement::kAuto, "Auto"), std::pair(Placement::kLocal, "Local"),
                                        std::pair(Placement::kRemote, "Remote")})
    CHECK(told(MakeJob("a").placement(placement).obj())["placement"] == name);
}

TEST_CASE("a worker has a time of readiness only while it is ready") {
  const json workers = told(MakeJob("a")
                                .worker({"a-0", "n1", true, 100, 110, false})
                                .worker({"a-1", "", false, 120, 0, true})
                                .obj())["workers"];
  CHECK(workers == json::parse(R"([{"name": "a-0", "node": "n1", "ready": true, "createdAtSeconds": 100.0,
      "readySinceSeconds": 110.0, "draining": false},
      {"name": "a-1", "node": "", "ready": false, "createdAtSeconds": 120.0, "draining": true}])"));
}

TEST_CASE("a measurement with every source, and one with the trainer's figures alone") {
  scheduler::Measurement measurement;
  measurement.window_end_seconds = 1000;
  measurement.window_seconds = 15;
  measurement.samples_per_second = 800;
  measurement.compute_share = 0.75;
  measurement.wait_share = 0.25;
  measurement.batches_in_window = 90;
  const json needed = told(MakeJob("a").measures(measurement).obj())["observation"]["measurement"];
  CHECK(needed == json::parse(R"({"windowEndSeconds": 1000.0, "windowSeconds": 15.0, "samplesPerSecond": 800.0,
      "computeShare": 0.75, "waitShare": 0.25, "batchesInWindow": 90.0})"));

  measurement.local = {300, 0.5};
  measurement.remote = {500, 0.75};
  measurement.workers_at_work = 2;
  measurement.blocked_threads = 0.5;
  measurement.queue = {3, 8};
  measurement.read_bytes_per_sample = 110'000;
  scheduler::Job job = MakeJob("a").measures(measurement).obj();
  job.bytes_per_sample = 602112;
  job.remaining_samples = 1e6;
  const json seen = told(job);
  const json& all = seen["observation"]["measurement"];
  CHECK(all["local"] == json{{"samplesPerSecond", 300}, {"busyCores", 0.5}});
  CHECK(all["remote"] == json{{"samplesPerSecond", 500}, {"busyCores", 0.75}});
  CHECK(all["queue"] == json{{"depth", 3}, {"capacity", 8}});
  CHECK(all["workersAtWork"] == 2);
  CHECK(all["blockedThreads"] == 0.5);
  CHECK(all["readBytesPerSample"] == 110'000);
  CHECK(seen["bytesPerSample"] == 602112);
  CHECK(seen["remainingSamples"] == 1e6);
  CHECK_FALSE(seen["observation"].contains("missingReason"));
}

TEST_CASE("of the estimator's memory it tells the rates and the knee, as far as there are any") {
  scheduler::EstimatorMemory memory;
  memory.feedback = 1.5;
  CHECK(told(MakeJob("a").memory(memory).obj())["memory"] ==
        json::parse(R"({"demandSamplesPerSecond": 0.0, "feedback": 1.5, "wasMeasured": false})"));
  memory.knee_cores = scheduler::Tracked::starting_at(4);
  memory.local_rate_per_core = scheduler::Tracked::starting_at(1000);
  memory.remote_rate_per_core = scheduler::Tracked::starting_at(770);
  const json known = told(MakeJob("a").memory(memory).obj())["memory"];
  CHECK(known["kneeCores"] == 4);
  CHECK(known["localRatePerCore"] == 1000);
  CHECK(known["remoteRatePerCore"] == 770);
}

TEST_CASE("a cluster without room on the page is told in part, and it says how much is missing") {
  MakeSnapshot snapshot;
  for (int i = 0; i < 100; ++i) snapshot.node("n" + std::to_string(100 + i), 4000);
  for (int i = 0; i < 100; ++i) snapshot.job(MakeJob("job-" + std::to_string(100 + i)).holds(2, "n100"));
  const std::string whole = snapshot_text(snapshot.obj());
  CHECK_FALSE(json::parse(whole).contains("leftOut"));

  constexpr std::size_t kRoom = 20'000;
  REQUIRE(whole.size() > 3 * kRoom);
  const std::string text = snapshot_text(snapshot.obj(), kRoom);
  CHECK(text.size() < kRoom + 100);
  const json part = json::parse(text);
  CHECK(part["nodes"].size() > 10);
  CHECK(part["jobs"].size() > 5);
  CHECK(part["nodes"][0]["name"] == "n100");
  CHECK(part["leftOut"]["nodes"] == 100 - part["nodes"].size());
  CHECK(part["leftOut"]["jobs"] == 100 - part["jobs"].size());
}

TEST_CASE("names that are no text do not break the page") {
  CHECK(told(MakeSnapshot().node("\xff", 1000).obj())["nodes"][0]["name"] == "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace sluice::control
