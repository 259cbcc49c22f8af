#include "operator/api/status_draft.h"

#include <limits>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr const char* kJob = R"({"metadata":{"generation":3},"status":{"observedGeneration":3,"bottleneck":"CpuBound",
  "workers":{"desired":2,"ready":1},"observed":{"samplesPerSecond":7},"explanation":"as it was"}})";

TEST_CASE("a figure that is not known, or no number that a status can hold, is absent") {
  const json object = json::parse(kJob);
  TrainingJobStatusDraft status{TrainingJob(object)};
  ObservedFigures figures;
  figures.samples_per_second = 99.6;
  figures.data_wait_percent = 0;
  figures.local_rate_per_core = std::numeric_limits<double>::quiet_NaN();
  figures.remote_rate_per_core = std::numeric_limits<double>::infinity();
  figures.knee_millicores = -1;
  figures.supply_percent = 1e15;
  status.set_figures(figures);
  CHECK(status.figures() == json::parse(R"({"samplesPerSecond":100,"dataWaitPercent":0})"));
  status.keep_figures();
  CHECK(status.figures() == json::parse(R"({"samplesPerSecond":7})"));
}

TEST_CASE("a status that says the same as before is no news") {
  const json object = json::parse(kJob);
  TrainingJobStatusDraft status{TrainingJob(object)};
  status.set_workers(2, 1, std::nullopt);
  status.keep_bottleneck();
  status.keep_figures();
  status.keep_explanation();
  CHECK(status.has_workers_as_before());
  CHECK_FALSE(status.is_news());
  status.set_workers(2, 2, 5);
  CHECK_FALSE(status.has_workers_as_before());
  CHECK(status.is_news());
  CHECK(status.body()["status"]["workers"] == json::parse(R"({"desired":2,"ready":2,"recommended":5})"));
}

TEST_CASE("what was not said before is not kept") {
  const json object = json::parse(R"({"metadata":{"generation":1}})");
  TrainingJobStatusDraft status{TrainingJob(object)};
  status.set_figures({.samples_per_second = 5});
  status.keep_figures();
  status.keep_all();
  CHECK(status.body() == json::parse(R"({"status":{"observedGeneration":1}})"));
}

TEST_CASE("a condition keeps the time of its last change") {
  const json object = json::parse(R"({"metadata":{"generation":2},"status":{"replicas":4,"conditions":[
      {"type":"Ready","status":"False","lastTransitionTime":"then"}]}})");
  const DataWorkerPool pool(object);
  for (const auto& [truth, since] : {std::pair(Truth::kFalse, "then"), std::pair(Truth::kTrue, "now")}) {
    PoolStatusDraft status(pool);
    status.keep_all();
    status.set_conditions({{"Ready", truth, "Scaling", "1 of 4"}}, "now");
    const json body = status.body();
    CHECK(body["status"]["replicas"] == 4);
    CHECK(body["status"]["observedGeneration"] == 2);
    CHECK(body["status"]["conditions"][0]["lastTransitionTime"] == since);
  }
}

}  // namespace
}  // namespace sluice::api
