#include "cli/job_report.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "src/base/testing/catch.h"
#include "src/kube/timestamp.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

const Clock::WallTimePoint kNow = *kube::parse_time("2026-01-01T01:00:00Z");

json running_job() {
  return json::parse(R"({
    "metadata": {"namespace": "default", "name": "vision"},
    "spec": {"mode": "Auto", "dataWorkers": {"min": 0, "max": 8, "placement": "Auto"}},
    "status": {
      "workers": {"desired": 3, "ready": 2, "recommended": 3}, "bottleneck": "DataBoundCpu",
      "explanation": "Needs 3 workers for 920 samples/s.",
      "observed": {"samplesPerSecond": 812, "demandSamplesPerSecond": 920, "dataWaitPercent": 12,
                   "acceleratorUtilisationPercent": 88, "kneeMilliCores": 790},
      "conditions": [{"type": "Ready", "status": "True", "reason": "TrainerRunning", "message": "1 of 1 trainer pods are ready",
                      "lastTransitionTime": "2026-01-01T00:57:00Z"}]}})");
}

json event(const std::string& reason, const std::string& time) {
  return {{"type", "Normal"}, {"reason", reason}, {"note", "note of " + reason}, {"eventTime", time}};
}

TEST_CASE("top has one aligned row per job") {
  CHECK(render_top({running_job()}, 0) ==
        "NAMESPACE  NAME    WORKERS  UTIL%  WAIT%  SAMPLES/S  DEMAND  BOTTLENECK    REASON\n"
        "default    vision      2/3     88     12        812     920  DataBoundCpu  Needs 3 workers for 920 "
        "samples/s.\n");
}

TEST_CASE("what is not known is a dash, never a zero") {
  json job = running_job();
  job["status"].erase("observed");
  job["status"].erase("bottleneck");
  const std::string table = render_top({job}, 0);
  CHECK_THAT(table, Catch::Contains("2/3      -      -          -       -  -"));
}

TEST_CASE("the reason column says what matters most") {
  struct Case {
    const char* name;
    const char* conditions;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"succeeded", R"([{"type":"Succeeded","status":"True"}])", "Succeeded"},
      Case{"failed", R"([{"type":"Failed","status":"True","message":"too often"}])", "Failed: too often"},
      Case{"suspended", R"([{"type":"Ready","status":"True","reason":"Suspended","message":"spec.suspend is true"}])",
           "Suspended: spec.suspend is true"},
      Case{"no operator", "[]", "not seen by the operator yet"});
  INFO(test.name);
  json job = running_job();
  job["status"]["conditions"] = json::parse(test.conditions);
  CHECK_THAT(render_top({job}, 0), Catch::Contains(test.want));
}

TEST_CASE("why gives the explanation, the figures, the conditions and the newest events") {
  std::vector<json> events;
  for (int minute = 10; minute < 30; ++minute)
    events.push_back(
        event("Event" + std::to_string(minute), "2026-01-01T00:" + std::to_string(minute) + ":00.000000Z"));
  const std::string report = render_why(running_job(), events, kNow);
  CHECK_THAT(report,
             Catch::StartsWith("TrainingJob default/vision: mode Auto, placement Auto, 0 to 8 data workers allowed\n\n"
                               "Needs 3 workers for 920 samples/s.\n"));
  CHECK_THAT(report, Catch::Contains("Workers: 2 ready, 3 desired, 3 recommended"));
  CHECK_THAT(report, Catch::Contains("demand (without any wait): 920 samples/s"));
  CHECK_THAT(report, Catch::Contains("Ready      True    3m"));
  CHECK(report.find("Event29") < report.find("Event28"));
  CHECK(report.find("Event19") == std::string::npos);
}

TEST_CASE("a repeated event is as old as its last time") {
  json repeated = event("Repeated", "2026-01-01T00:00:00.000000Z");
  repeated["series"] = {{"count", 3}, {"lastObservedTime", "2026-01-01T00:59:50.000000Z"}};
  CHECK_THAT(render_why(running_job(), {repeated}, kNow), Catch::Contains("10s  Normal  Repeated"));
}

TEST_CASE("why says what helps, as docs/scheduling.md does") {
  std::ifstream page("docs/scheduling.md");
  const std::regex row("\\| `(GpuBound|NotDataBound|DataBound\\w+)` \\| .* \\|(.*)\\|");
  std::size_t rows = 0;
  std::string line;
  while (std::getline(page, line) && line != "| bottleneck | the trainer | what helps |") {
  }
  while (std::getline(page, line)) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    INFO(line);
    ++rows;
    json job = running_job();
    job["status"]["bottleneck"] = cells[1].str();
    const std::string helps = cells[2];  // with a blank on each side
    const std::string report = render_why(job, {}, kNow);
    const bool is_explained = cells[1] == "DataBoundStorage" || cells[1] == "DataBoundNetwork";
    if (helps == " " || is_explained)
      CHECK(report.find("What helps") == std::string::npos);
    else
      CHECK_THAT(report, Catch::Contains("What helps:" + helps.substr(0, helps.size() - 1) + "\n"));
  }
  CHECK(rows == 6);
}

TEST_CASE("why of a job that the operator has not seen yet") {
  const json job = {{"metadata", {{"namespace", "default"}, {"name", "new"}}}};
  const std::string report = render_why(job, {}, kNow);
  CHECK_THAT(report, Catch::Contains("not seen by the operator yet"));
  CHECK_THAT(report, Catch::Contains("Figures\n  none yet\n"));
}

TEST_CASE("programs get the status as it is") {
  const json output = top_as_json({running_job()});
  CHECK(output["items"][0]["name"] == "vision");
  CHECK(output["items"][0]["status"]["workers"]["ready"] == 2);
}

TEST_CASE("an event is shown with its object, and programs get all of them") {
  json of_pod = event("FailedScheduling", "2026-01-01T00:59:50.000000Z");
  of_pod["regarding"] = {{"kind", "Pod"}, {"name", "vision-worker-0"}};
  CHECK_THAT(render_why(running_job(), {of_pod}, kNow), Catch::Contains("FailedScheduling  Pod/vision-worker-0"));
  const json output = why_as_json(running_job(), {of_pod});
  CHECK(output["events"] == json::array({of_pod}));
  CHECK(output["metadata"]["name"] == "vision");
}

TEST_CASE("ages read as kubectl writes them") {
  struct Case {
    const char* time;
    const char* want;
  };
  const Case test = GENERATE(Case{"2026-01-01T00:59:48Z", "12s"}, Case{"2026-01-01T00:57:00Z", "3m"},
                             Case{"2025-12-31T22:00:00Z", "3h"}, Case{"2025-12-20T01:00:00Z", "12d"}, Case{"", "-"},
                             Case{"2026-01-01T01:00:05Z", "0s"});
  CHECK(age(test.time, kNow) == test.want);
}

}  // namespace
}  // namespace sluice::cli
