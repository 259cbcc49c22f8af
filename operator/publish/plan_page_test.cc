#include "operator/publish/plan_page.h"

#include <nlohmann/json.hpp>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::control {
namespace {

using nlohmann::json;
using scheduler::testing::FluidJob;
using scheduler::testing::MakeJob;
using scheduler::testing::MakeSnapshot;

const FluidJob kHungry{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};

// What the decision loop publishes about the snapshot.
decide::Round decided(const scheduler::ClusterSnapshot& snapshot) {
  const scheduler::Plan plan = scheduler::decide(snapshot, {});
  decide::Round round;
  round.snapshot = std::make_shared<const scheduler::ClusterSnapshot>(snapshot);
  round.utilisation = scheduler::utilisation_of(snapshot, plan, {});
  round.capacity_millicores = plan.capacity_millicores;
  round.granted_millicores = plan.granted_millicores;
  for (const scheduler::JobPlan& job : plan.jobs)
    round.jobs[{job.id.job_namespace, job.id.name}] = std::make_shared<const decide::JobDecision>(
        decide::JobDecision{.job_uid = "uid", .plan = job, .worker_millicores = 1000});
  return round;
}

decide::Round usual() {
  return decided(MakeSnapshot().node("n1", 4000).job(MakeJob("hungry").measures(kHungry)).job(MakeJob("fresh")).obj());
}

json ask(const http::Query& query, const decide::Round& round = usual()) {
  const http::Page page = plan_page(round, {}, query);
  REQUIRE(page.status == 200);
  CHECK(page.content_type == "application/json");
  return json::parse(page.body);
}

TEST_CASE("the plan tells of every job what it gets and what more would bring") {
  const json page = ask({});
  CHECK(page["decidedAt"] == "1970-01-12T13:46:40Z");
  CHECK(page["cpu"] == json{{"grantedMilliCores", 4000}, {"capacityMilliCores", 4000}});
  CHECK(page["utilisation"]["jobs"] == 1);
  CHECK(page["utilisation"]["ownCpuPercent"] == Approx(12.5).margin(0.1));
  CHECK(page["utilisation"]["planPercent"] == Approx(51).margin(0.5));
  CHECK(page["utilisation"]["anyPlanPercent"] == Approx(51).margin(0.5));
  CHECK_FALSE(page.contains("whatIf"));

  const json& hungry = page["jobs"][1];
  CHECK(hungry["name"] == "hungry");
  CHECK(hungry["workers"] == 4);
  CHECK(hungry["reason"] == "Cpu");
  CHECK(hungry["newWorkerNodes"] == json(std::vector<std::string>(4, "n1")));
  CHECK_THAT(hungry["evidence"].get<std::string>(), Catch::StartsWith("waits "));
  CHECK(hungry["speedPercent"] == Approx(51).margin(0.5));
  REQUIRE(hungry["gains"].size() == 3);
  CHECK(hungry["gains"][0]["workers"] == 1);
  CHECK(hungry["gains"][2]["workers"] == 4);
  CHECK(hungry["gains"][0]["percent"] > 10);
  CHECK(hungry["gains"][2]["percent"] > hungry["gains"][0]["percent"]);
}

TEST_CASE("what is not known is absent") {
  const json page = ask({});
  const json& fresh = page["jobs"][0];
  CHECK(fresh["name"] == "fresh");
  CHECK(fresh["reason"] == "NoMetrics");
  CHECK_FALSE(fresh.contains("speedPercent"));
  CHECK_FALSE(fresh.contains("gains"));
  CHECK_FALSE(ask({}, decided(MakeSnapshot().node("n1", 4000).obj())).contains("utilisation"));
}

TEST_CASE("the gains of a number of workers that the question names") {
  const json more = ask({{"workers", "3"}})["jobs"][1]["gains"];
  REQUIRE(more.size() == 1);
  CHECK(more[0]["workers"] == 3);
  CHECK(more[0]["percent"] > 0);
  CHECK(ask({{"workers", "-2"}})["jobs"][1]["gains"][0]["percent"] < 0);
}

TEST_CASE("more nodes are a whole new decision, and nothing of the published one changes") {
  const json page = ask({{"nodes", "2x2"}});
  const json& answer = page["whatIf"];
  CHECK(answer["nodes"] == 2);
  CHECK(answer["nodeMilliCores"] == 2000);
  REQUIRE(answer["jobs"].size() == 2);
  CHECK(answer["jobs"][1]["workers"] == 4);
  CHECK_THAT(answer["jobs"][1]["text"], Catch::StartsWith("+4 workers: +"));
  CHECK(answer["utilisation"]["planPercent"] > page["utilisation"]["planPercent"]);
  CHECK(page["jobs"] == ask({})["jobs"]);

  // A node that has the name already is another one.
  const decide::Round round = decided(MakeSnapshot().node("what-if-1", 4000).job(MakeJob("a").measures(kHungry)).obj());
  CHECK(ask({{"nodes", "2x2"}}, round)["whatIf"]["jobs"][0]["workers"] == 4);
}

TEST_CASE("the snapshot of the decision and the rest of the plan are there when they are asked for") {
  const json page = ask({{"snapshot", "1"}, {"workers", "3"}});
  CHECK(page["snapshot"]["takenAtSeconds"] == scheduler::testing::kNowSeconds);
  CHECK(page["snapshot"]["nodes"][0]["name"] == "n1");
  REQUIRE(page["snapshot"]["jobs"].size() == 2);
  const json& hungry = page["jobs"][1];
  CHECK(hungry["gains"].size() == 1);
  CHECK(hungry["victims"] == json::array());
  CHECK(hungry["local"] == json::array());
  CHECK_THAT(hungry["explanation"].get<std::string>(), Catch::StartsWith("No node has room for more than 4 workers"));
  CHECK(hungry["estimate"]["confidence"] == "Assumed");
  CHECK(hungry["estimate"]["demandSamplesPerSecond"] == Approx(8000).epsilon(0.01));
  CHECK(hungry["supplyRatio"] < hungry["plannedSupplyRatio"]);
  CHECK(hungry["nextWorkerGainPercent"] > 10);
  for (const char* figure : {"supplyRatio", "plannedSupplyRatio", "nextWorkerGainPercent"})
    CHECK_FALSE(page["jobs"][0].contains(figure));
  CHECK(page["jobs"][0]["estimate"] == json{{"confidence", "None"}});

  for (const char* on_request : {"snapshot", "victims", "explanation"}) {
    CHECK_FALSE(ask({}).contains(on_request));
    CHECK_FALSE(ask({})["jobs"][1].contains(on_request));
  }
}

TEST_CASE("the feeders' CPU and the workers that go are part of the plan") {
  scheduler::Job job = MakeJob("a").holds(2, "n1").max(1).obj();
  job.hosts = {{.node = "n1", .request_millicores = 300, .limit_millicores = 400}};
  job.local_adjustable = true;
  scheduler::ClusterSnapshot snapshot = MakeSnapshot().node("n1", 4000).obj();
  snapshot.jobs.push_back(job);
  const json seen = ask({{"snapshot", "1"}}, decided(snapshot))["jobs"][0];
  CHECK(seen["victims"].size() == 1);
  REQUIRE(seen["local"].size() == 1);
  CHECK(seen["local"][0]["node"] == "n1");
  CHECK(seen["local"][0]["requestMillicores"] >= 300);
  CHECK(seen["local"][0]["limitMillicores"] >= seen["local"][0]["requestMillicores"]);
}

TEST_CASE("questions that make no sense are told what they may be") {
  struct Case {
    const char* name;
    const char* value;
    const char* way_out;
  };
  const Case cases[] = {{"workers", "", "such as 3"},
                        {"workers", "0", "such as 3"},
                        {"workers", "3x", "such as 3"},
                        {"workers", "1e9", "such as 3"},
                        {"workers", "9999999", "such as 3"},
                        {"nodes", "2", "such as 2x32"},
                        {"nodes", "2x", "such as 2x32"},
                        {"nodes", "x32", "such as 2x32"},
                        {"nodes", "0x32", "such as 2x32"},
                        {"nodes", "1001x1", "at most 1000x4096"},
                        {"nodes", "2x4097", "at most 1000x4096"},
                        {"nodes", "2x32x", "such as 2x32"},
                        {"snapshot", "0", "snapshot=1"},
                        {"cores", "3", "ask workers=3, nodes=2x32 or snapshot=1"}};
  for (const Case& c : cases) {
    INFO(c.name << "=" << c.value);
    const http::Page page = plan_page(usual(), {}, {{c.name, c.value}});
    CHECK(page.status == 400);
    CHECK_THAT(page.body, Catch::StartsWith(c.name) && Catch::Contains(c.way_out));
  }
}

TEST_CASE("a replica that has decided nothing says so") {
  const http::Page page = plan_page({}, {}, {});
  CHECK(page.status == 503);
  CHECK_THAT(page.body, Catch::Contains("does not lead"));
}

}  // namespace
}  // namespace sluice::control
