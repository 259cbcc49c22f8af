#include "cli/plan_report.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

json page() {
  return json::parse(R"({
    "decidedAt": "2026-01-01T00:00:00Z",
    "cpu": {"grantedMilliCores": 800, "capacityMilliCores": 1250},
    "utilisation": {"jobs": 1, "ownCpuPercent": 46.2, "planPercent": 91.0, "anyPlanPercent": 96.7},
    "jobs": [
      {"namespace": "default", "name": "vision", "workers": 4, "recommended": 4, "speedPercent": 90.6, "reason": "Cpu",
       "bottleneck": "DataBoundCpu",
       "gains": [{"workers": 1, "percent": 5.6}, {"workers": 2, "percent": 8.4}, {"workers": 4, "percent": 9.9}]},
      {"namespace": "team-b", "name": "fresh", "workers": 0, "recommended": 0, "reason": "NoMetrics",
       "bottleneck": "Unknown"}]})");
}

TEST_CASE("a plan is a table of what the next workers bring, and what can be gained at all") {
  const auto text = render_plan(page(), "", 0);
  REQUIRE(text.ok());
  CHECK(*text ==
        "NAMESPACE  NAME    WORKERS  SPEED  +1 WORKER  +2 WORKERS  +4 WORKERS  REASON\n"
        "default    vision        4   91 %       +6 %        +8 %       +10 %  Cpu\n"
        "team-b     fresh         0      -          -           -           -  NoMetrics\n"
        "\n"
        "Data workers may have 1.25 cores of this cluster; this plan gives them 0.8.\n"
        "The accelerators of 1 measured job would be 46 % busy on the jobs' own CPU. This plan makes it 91 %; no "
        "division of this CPU can make it more than 97 %.\n");
}

TEST_CASE("more nodes are answered in a column, and for the whole cluster") {
  json asked = page();
  asked["whatIf"] = json::parse(R"({"nodes": 2, "nodeMilliCores": 32000,
    "utilisation": {"jobs": 1, "ownCpuPercent": 46.2, "planPercent": 99.4, "anyPlanPercent": 100},
    "jobs": [{"namespace": "default", "name": "vision", "workers": 3, "percent": 9.4, "text": "+3 workers: +9 % steps/s"}]})");
  const auto text = render_plan(asked, "", 0);
  REQUIRE(text.ok());
  CHECK_THAT(*text, Catch::Contains("WITH 2 more nodes of 32 cores"));
  CHECK_THAT(*text, Catch::Contains("+3 workers: +9 % steps/s       Cpu\n"));
  CHECK_THAT(*text, Catch::EndsWith("With 2 more nodes of 32 cores: 99 %, and no more than 100 %.\n"));
}

TEST_CASE("one namespace, fewer workers, nothing measured, and nothing decided about") {
  const auto other = render_plan(page(), "team-b", 0);
  CHECK_THAT(*other, Catch::Contains("fresh") && !Catch::Contains("default"));

  json fewer = page();
  fewer["jobs"][0]["gains"] = json::parse(R"([{"workers": -1, "percent": -20.2}])");
  CHECK_THAT(*render_plan(fewer, "", 0), Catch::Contains("-1 WORKER  REASON") && Catch::Contains("-20 %  Cpu"));

  json unmeasured = page();
  unmeasured.erase("utilisation");
  unmeasured["jobs"].erase(0);
  CHECK(*render_plan(unmeasured, "", 0) ==
        "NAMESPACE  NAME   WORKERS  SPEED  REASON\n"
        "team-b     fresh        0      -  NoMetrics\n"
        "\n"
        "Data workers may have 1.25 cores of this cluster; this plan gives them 0.8.\n");

  CHECK_THAT(*render_plan(page(), "nowhere", 0), Catch::StartsWith("No TrainingJobs are part of the last decision.\n"));
}

TEST_CASE("a page of another shape is an error, not a crash") {
  for (const char* text : {"{}", "[]", "null", R"({"jobs": 3})", R"({"jobs": [{}], "cpu": {}})"}) {
    INFO(text);
    const auto plan = render_plan(json::parse(text), "", 0);
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code() == ErrorCode::kDataLoss);
  }
}

TEST_CASE("what may be asked") {
  struct Case {
    const char* what_if;
    const char* target;  // null: refused
    bool with_snapshot = false;
  };
  const Case cases[] = {{"", "/plan"},
                        {"workers=3", "/plan?workers=3"},
                        {"nodes=2x32", "/plan?nodes=2x32"},
                        {"", "/plan?snapshot=1", true},
                        {"workers=3", "/plan?workers=3&snapshot=1", true},
                        {"workers=", "/plan?workers="},
                        {"nodes=a&b", "/plan?nodes=a%26b"},
                        {"workers", nullptr},
                        {"cores=3", nullptr},
                        {"=3", nullptr}};
  for (const Case& c : cases) {
    INFO(c.what_if);
    const auto target = plan_target(c.what_if, c.with_snapshot);
    REQUIRE(target.ok() == (c.target != nullptr));
    if (target.ok())
      CHECK(*target == c.target);
    else
      CHECK_THAT(target.error().message(), Catch::Contains("workers=3") && Catch::Contains("nodes=2x32"));
  }
}

}  // namespace
}  // namespace sluice::cli
