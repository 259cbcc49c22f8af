#include "operator/decide/worker_sizing.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using api::WorkerSize;
using nlohmann::json;
using observe::SizedWorkers;
using namespace observe::testing;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = 1024 * kMebibyte;
constexpr double kLong = 600;

// Two workers of 1 Gi that have been ready for long.
SizedWorkers two_workers() {
  SizedWorkers workers;
  workers.job_uid = "uid-vision";
  workers.chosen = workers.size = WorkerSize{1000, kGibibyte};
  workers.count = 2;
  workers.ready_seconds = kLong;
  return workers;
}

TEST_CASE("when workers get another size, by situation") {
  struct Row {
    const char* situation;
    std::optional<double> peak_mebibytes;
    std::int64_t least_mebibytes;
    double ready_seconds;
    std::optional<double> remaining_seconds;
    std::optional<std::int64_t> want_mebibytes;
  };
  const Row rows[] = {
      {"nothing was measured", {}, 0, kLong, {}, {}},
      {"the most that one used, and 15 % more, in steps of 16 Mi", 1500, 0, kLong, {}, 1728},
      {"more is needed: whenever that is seen", 1500, 0, 0, {}, 1728},
      {"a fifth less", 712, 0, kLong, {}, {}},
      {"more than a fifth less", 690, 0, kLong, {}, 800},
      {"a fifth more", 1070, 0, kLong, {}, 1232},
      {"nearly a fifth more", 1040, 0, kLong, {}, {}},
      {"less is enough so far, but they have just begun", 200, 0, 599, {}, {}},
      {"less is enough", 200, 0, kLong, {}, 240},
      {"next to nothing is enough: the least that is allowed", 1, 0, kLong, {}, 128},
      {"more than is allowed", 9000, 0, kLong, {}, 4096},
      {"the job ends before it pays", 200, 0, kLong, 599, {}},
      {"and a larger size does not pay either", 3000, 0, kLong, 599, {}},
      {"the job goes on for long enough", 200, 0, kLong, 600, 240},
      {"one ran out of memory", {}, 2048, 0, {}, 2048},
      {"one ran out of memory, and the job ends soon", 900, 2048, 0, 10, 2048},
      {"one ran out of memory with the most that is allowed", {}, 8192, kLong, {}, 4096},
      {"one ran out of memory before: no smaller size for the rest of the job", 200, 1024, kLong, {}, {}},
      {"nor one that is smaller than twice that", 200, 512, kLong, {}, 512},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    SizedWorkers workers = two_workers();
    workers.bounds.max_memory_bytes = 4 * kGibibyte;
    workers.ready_seconds = row.ready_seconds;
    if (row.peak_mebibytes) workers.peak_bytes = *row.peak_mebibytes * kMebibyte;
    const auto next = next_size(workers, row.least_mebibytes * kMebibyte, row.remaining_seconds);
    REQUIRE(next.has_value() == row.want_mebibytes.has_value());
    if (!next) continue;
    CHECK(next->size.millicores == 1000);
    CHECK(next->size.memory_bytes / kMebibyte == *row.want_mebibytes);
  }
}

TEST_CASE("bounds that have changed hold at once, measured or not") {
  SizedWorkers workers = two_workers();
  workers.bounds.max_memory_bytes = kGibibyte / 2;
  CHECK(next_size(workers, 0, 10)->size == WorkerSize{1000, kGibibyte / 2});
  workers.bounds = {};
  workers.bounds.min_memory_bytes = 2 * kGibibyte;
  CHECK(next_size(workers, 0, 10)->size == WorkerSize{1000, 2 * kGibibyte});
}

TEST_CASE("a size that was taken stays while the same is measured") {
  SizedWorkers workers = two_workers();
  for (const double peak : {20.0, 150.0, 700.0, 3000.0, 30000.0}) {
    CAPTURE(peak);
    workers.peak_bytes = peak * kMebibyte;
    if (const auto next = next_size(workers, 0, {})) workers.chosen = next->size;
    CHECK_FALSE(next_size(workers, 0, {}).has_value());
  }
}

TEST_CASE("without workers the size to begin with is taken, where it is another") {
  SizedWorkers workers = two_workers();
  workers.count = 0;
  workers.peak_bytes = 3e9;
  CHECK_FALSE(next_size(workers, 0, {}).has_value());
  workers.size.millicores = 500;
  CHECK(next_size(workers, 0, {})->size == WorkerSize{500, kGibibyte});
  workers.chosen.reset();
  workers.size = workers.bounds.first();
  CHECK_FALSE(next_size(workers, 0, {}).has_value());
}

// A job whose workers' size is Sluice's, a plan for it, and what was seen of its workers.
struct Situation {
  observe::ClusterObjects objects = observe::testing::cluster();
  std::map<scheduler::JobId, SizedWorkers> workers = {{{"default", "vision"}, two_workers()}};
  scheduler::Plan plan;
  WorkerSizing sizing;

  Situation() {
    json job = training_job();
    job["spec"]["dataWorkers"].erase("resources");
    put(objects.training_jobs, job);
    plan.jobs.emplace_back();
    plan.jobs[0].id = {"default", "vision"};
    plan.jobs[0].workers = plan.jobs[0].recommended = 2;
  }
  SizedWorkers& vision() { return workers.begin()->second; }
  std::vector<SizeOrder> orders() { return sizing.orders(objects, workers, plan); }
};

TEST_CASE("the pool is told the size, as a field manager of its own, and people are told why") {
  Situation situation;
  situation.vision().peak_bytes = 1500.0 * kMebibyte;
  const auto orders = situation.orders();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].action.verb == kube::Verb::kApply);
  CHECK(orders[0].action.field_manager == "sluice-sizing");
  CHECK(orders[0].action.uid == "uid-pool");
  CHECK(orders[0].action.body == json::parse(R"({"spec": {"workerResources": {
    "requests": {"cpu": "1000m", "memory": "1728Mi"}, "limits": {"cpu": "1000m", "memory": "3456Mi"}}}})"));
  REQUIRE(orders[0].event.has_value());
  CHECK(orders[0].event->note == "each data worker gets 1000m and 1728Mi of memory: the most that one used is 1500Mi");
}

TEST_CASE("a worker that ran out of memory is not forgotten when its pod is gone") {
  Situation situation;
  situation.vision().exhausted_bytes = kGibibyte;
  REQUIRE(situation.orders().size() == 1);
  situation.vision().chosen = situation.vision().size = WorkerSize{1000, 2 * kGibibyte};
  situation.vision().exhausted_bytes = 0;
  situation.vision().peak_bytes = 300.0 * kMebibyte;
  CHECK(situation.orders().empty());
  // Another job of this name has nothing to do with it.
  situation.vision().job_uid = "uid-other";
  CHECK(situation.orders().size() == 1);
}

TEST_CASE("nothing is written for a job without workers that is to have none") {
  Situation situation;
  situation.vision().count = 0;
  situation.vision().size.millicores = 500;
  CHECK(situation.orders().size() == 1);
  situation.plan.jobs[0].workers = situation.plan.jobs[0].recommended = 0;
  CHECK(situation.orders().empty());
  situation.plan.jobs[0].recommended = 1;  // mode Recommend: another one starts them
  CHECK(situation.orders().size() == 1);
}

TEST_CASE("a TrainingJob that states its workers' resources takes the choice back") {
  Situation situation;
  situation.workers.clear();
  json chosen = pool(2);
  chosen["spec"]["workerResources"]["requests"] = {{"cpu", "1"}, {"memory", "1Gi"}};
  put(situation.objects.pools, chosen);
  CHECK(situation.orders().empty());  // it has not
  put(situation.objects.training_jobs, training_job());
  const auto orders = situation.orders();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].action.verb == kube::Verb::kMergePatch);
  CHECK(orders[0].action.body == json{{"spec", {{"workerResources", nullptr}}}});
  put(situation.objects.pools, pool(2));
  CHECK(situation.orders().empty());
}

TEST_CASE("what others made of the pool's resources is put right where no worker can have it") {
  for (const json& requests : {json::object(), json{{"cpu", "1"}}, json{{"cpu", "-1"}, {"memory", "1Gi"}},
                               json{{"cpu", "1"}, {"memory", "9E"}}}) {
    CAPTURE(requests.dump());
    Situation situation;
    json damaged = pool(2);
    damaged["spec"]["workerResources"]["requests"] = requests;
    put(situation.objects.pools, damaged);
    situation.vision().chosen.reset();
    const auto orders = situation.orders();
    REQUIRE(orders.size() == 1);
    CHECK(orders[0].action.body["spec"]["workerResources"]["requests"] ==
          json::parse(R"({"cpu": "1000m", "memory": "1024Mi"})"));
  }
}

TEST_CASE("a pool that is gone, or is a namesake's, gets no size") {
  Situation situation;
  situation.vision().peak_bytes = 1500.0 * kMebibyte;
  json namesake = pool(2);
  namesake["metadata"]["ownerReferences"][0]["uid"] = "other";
  put(situation.objects.pools, namesake);
  CHECK(situation.orders().empty());
  situation.objects.pools.clear();
  CHECK(situation.orders().empty());
}

}  // namespace
}  // namespace sluice::decide
