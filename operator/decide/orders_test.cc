#include "operator/decide/orders.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using control::testing::owner_reference;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

void add_job(observe::ClusterObjects& objects, const std::string& name, int replicas,
             const std::string& mode = "Auto") {
  json job = training_job();
  job["metadata"]["name"] = name;
  job["metadata"]["uid"] = "uid-" + name;
  job["spec"]["mode"] = mode;
  objects.training_jobs[{"default", name}] = shared(job);
  json its_pool = pool(replicas);
  its_pool["metadata"]["name"] = name;
  its_pool["metadata"]["ownerReferences"] = json::array({owner_reference("TrainingJob", name, "uid-" + name)});
  objects.pools[{"default", name}] = shared(its_pool);
}

scheduler::JobPlan plan_for(const std::string& name, int workers) {
  scheduler::JobPlan plan;
  plan.id = {"default", name};
  plan.workers = workers;
  plan.explanation = "because";
  return plan;
}

TEST_CASE("a pool with another number than the plan's is scaled, as the scheduler's field manager") {
  observe::ClusterObjects objects;
  add_job(objects, "vision", 1);
  const auto orders = scale_orders(objects, {.jobs = {plan_for("vision", 4)}});
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].action.verb == kube::Verb::kApply);
  CHECK(orders[0].action.field_manager == "sluice-scheduler");
  CHECK(orders[0].action.uid == "uid-pool");
  CHECK(orders[0].action.body ==
        json{{"metadata", {{"annotations", {{"sluice.dev/planned-workers", "4"}}}}}, {"spec", {{"replicas", 4}}}});
  CHECK(orders[0].event.reason == "ScaledUp");
  CHECK(orders[0].event.action == "ScaleTo4");
  CHECK(orders[0].event.note == "data workers 1 -> 4: because");
}

TEST_CASE("who scales a pool in mode Auto is told why it does not last") {
  observe::ClusterObjects objects;
  add_job(objects, "vision", 7);
  json overwritten = *objects.pools.begin()->second;
  const auto order_when_planned = [&](const char* planned) {
    overwritten["metadata"]["annotations"]["sluice.dev/planned-workers"] = planned;
    objects.pools.begin()->second = shared(overwritten);
    return scale_orders(objects, {.jobs = {plan_for("vision", 3)}}).at(0);
  };
  const kube::Event told = order_when_planned("3").event;
  CHECK(told.reason == "ReplicasOverwritten");
  CHECK(told.type == kube::EventType::kWarning);
  CHECK(told.note ==
        "data workers 7 -> 3: because (it had been set to 7; in mode Auto the scheduler decides: use "
        "dataWorkers.min and max, or mode Recommend)");
  CHECK(order_when_planned("7").event.reason == "ScaledDown");
}

TEST_CASE("nothing is written where nothing changes, or where the mode leaves the number to others") {
  struct Case {
    const char* name;
    const char* mode;
    int workers;
  };
  const Case test = GENERATE(Case{"as planned already", "Auto", 2}, Case{"mode Recommend", "Recommend", 5},
                             Case{"mode Off", "Off", 5});
  INFO(test.name);
  observe::ClusterObjects objects;
  add_job(objects, "vision", 2, test.mode);
  CHECK(scale_orders(objects, {.jobs = {plan_for("vision", test.workers)}}).empty());
}

TEST_CASE("a pool that is gone, or is a namesake's, gets no order") {
  observe::ClusterObjects objects;
  add_job(objects, "vision", 2);
  SECTION("gone") { objects.pools.clear(); }
  SECTION("a namesake's") {
    json other = *objects.pools.begin()->second;
    other["metadata"]["ownerReferences"][0]["uid"] = "uid-old";
    objects.pools.begin()->second = shared(other);
  }
  SECTION("its job is gone") { objects.training_jobs.clear(); }
  CHECK(scale_orders(objects, {.jobs = {plan_for("vision", 4)}}).empty());
}

TEST_CASE("room is freed before it is filled") {
  observe::ClusterObjects objects;
  add_job(objects, "grows", 1);
  add_job(objects, "shrinks", 4);
  const auto orders = scale_orders(objects, {.jobs = {plan_for("grows", 4), plan_for("shrinks", 1)}});
  REQUIRE(orders.size() == 2);
  CHECK(orders[0].event.key.name == "shrinks");
  CHECK(orders[0].event.reason == "ScaledDown");
  CHECK(orders[1].event.key.name == "grows");
}

TEST_CASE("the pool of a held job grows, but shrinks only by the workers in the way of its feeders") {
  observe::ClusterObjects objects;
  add_job(objects, "vision", 3);
  const std::set<scheduler::JobId> held = {{"default", "vision"}};
  CHECK(scale_orders(objects, {.jobs = {plan_for("vision", 1)}}, held).empty());
  scheduler::JobPlan plan = plan_for("vision", 0);
  plan.local = {{"host", 6000, 8000}};
  const char* nodes[] = {"elsewhere", "host", "elsewhere"};
  for (int i = 0; i < 3; ++i)
    observe::testing::put(objects.pods, observe::testing::worker("vision-worker-" + std::to_string(i), nodes[i]));
  const auto orders = scale_orders(objects, {.jobs = {plan}}, held);
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].to == 2);
  CHECK(scale_orders(objects, {.jobs = {plan_for("vision", 4)}}, held).size() == 1);
  CHECK(scale_orders(objects, {.jobs = {plan_for("vision", 1)}}, {{"default", "speech"}}).size() == 1);
}

}  // namespace
}  // namespace sluice::decide
