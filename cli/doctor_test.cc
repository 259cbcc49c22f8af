#include "cli/doctor.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/kube/timestamp.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

const auto kLookedAt = *kube::parse_time("2026-01-01T01:00:00Z");

json conditions(const char* type, const char* status) {
  return {{"conditions", json::array({{{"type", type}, {"status", status}}})}};
}

Installation healthy() {
  Installation all_well;
  all_well.operator_pods = {{{"metadata", {{"name", "operator-1"}}}, {"status", conditions("Ready", "True")}}};
  all_well.leases = {{{"spec", {{"holderIdentity", "operator-1"}, {"renewTime", "2026-01-01T00:59:58.000000Z"}}}}};
  json job = {{"metadata", {{"namespace", "a"}, {"name", "vision"}}},
              {"status", conditions("MetricsAvailable", "True")}};
  job["status"]["workers"] = {{"ready", 2}, {"desired", 2}};
  all_well.jobs = {job};
  return all_well;
}

std::vector<std::string> failed(const Installation& installation) {
  std::vector<std::string> names;
  for (const Check& check : examine(installation, kLookedAt)) {
    if (!check.passed) names.push_back(check.name);
    CHECK(check.passed == check.way_out.empty());
  }
  return names;
}

TEST_CASE("each fault fails its own check, and a healthy installation none") {
  struct Case {
    const char* fault;
    void (*cause)(Installation&);
    std::vector<std::string> want;
  };
  const Case cases[] = {
      {"none", [](Installation&) {}, {}},
      {"no operator", [](Installation& at) { at.operator_pods.clear(); }, {"operator", "leader"}},
      {"a pod is not ready",
       [](Installation& at) { at.operator_pods[0]["status"] = conditions("Ready", "False"); },
       {"operator"}},
      {"the lease is old",
       [](Installation& at) { at.leases[0]["spec"]["renewTime"] = "2026-01-01T00:58:00.000000Z"; },
       {"leader"}},
      {"another program's lease",
       [](Installation& at) { at.leases[0]["spec"]["holderIdentity"] = "other"; },
       {"leader"}},
      {"a job without status", [](Installation& at) { at.jobs[0].erase("status"); }, {"jobs seen"}},
      {"no metrics",
       [](Installation& at) {
         at.jobs[0]["status"]["conditions"] = conditions("MetricsAvailable", "False")["conditions"];
       },
       {"metrics"}},
      {"a worker is missing", [](Installation& at) { at.jobs[0]["status"]["workers"]["ready"] = 1; }, {"workers"}},
      {"a finished job",
       [](Installation& at) {
         at.jobs[0]["status"]["conditions"] = conditions("Succeeded", "True")["conditions"];
         at.jobs[0]["status"]["workers"]["ready"] = 1;
       },
       {}},
      {"no job", [](Installation& at) { at.jobs.clear(); }, {}},
  };
  for (const Case& c : cases) {
    INFO(c.fault);
    Installation installation = healthy();
    c.cause(installation);
    CHECK(failed(installation) == c.want);
  }
}

TEST_CASE("a check names the first jobs and counts the others") {
  Installation installation = healthy();
  installation.jobs[0]["status"]["workers"]["ready"] = 0;
  installation.jobs.resize(7, installation.jobs[0]);
  const std::string page = render_checks(examine(installation, kLookedAt));
  CHECK_THAT(page, Catch::Contains("FAIL  workers: fewer workers ready than desired: a/vision, ") &&
                       Catch::Contains("and 2 more\n      kubectl sluice why JOB"));
  CHECK_THAT(page, Catch::Contains("ok    leader: operator-1\n"));
}

TEST_CASE("programs get every check") {
  const json page = checks_as_json(examine(healthy(), kLookedAt));
  REQUIRE(page["checks"].size() == 5);
  CHECK(page["checks"][1] == json{{"name", "leader"}, {"passed", true}, {"finding", "operator-1"}, {"wayOut", ""}});
}

}  // namespace
}  // namespace sluice::cli
