#include "operator/fault_simulation/fault_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/fault_simulation/campaign.h"
#include "operator/fault_simulation/simulation.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

TEST_CASE("a plan survives being a file") {
  FaultPlan plan = random_plan(42);
  plan.operator_skew_seconds = -600;
  plan.node_skew_seconds = 17;
  plan.perturbation = Perturbation{Perturbation::Kind::kUnobserved, 17, 23};
  using Place = nlohmann::json::json_pointer;
  const nlohmann::json nothing(nlohmann::json::value_t::discarded);
  plan.damages = {{"a", Place("/spec/volumes/-"), {{"name", "v"}}, 64}, {"a", Place("/spec"), nothing}};
  plan.stored_before = true;
  const auto read = FaultPlan::from_json(plan.to_json());
  REQUIRE(read.ok());
  CHECK(read->to_json() == plan.to_json());
  CHECK(read->operator_skew_seconds == -600);
  CHECK(read->node_skew_seconds == 17);
  CHECK(read->damages.at(0).times == 64);
  CHECK(read->damages.at(1).value.is_discarded());
  CHECK(read->stored_before);
  CHECK(read->perturbation->kind == Perturbation::Kind::kUnobserved);
}

TEST_CASE("a file that is no plan is refused") {
  for (const char* text : {"{}", R"({"workload": "starved"})", R"({"workload": "starved", "seed": "one"})",
                           R"({"workload": "starved", "seed": 1, "perturbation": {"pattern": "other", "at": 1}})",
                           R"({"workload": "starved", "seed": 1, "damages": [{"object": "a"}]})",
                           R"({"workload": "starved", "seed": 1, "damages": [{"object": "a", "place": "spec"}]})"}) {
    INFO(text);
    CHECK_FALSE(FaultPlan::from_json(nlohmann::json::parse(text)).ok());
  }
  FaultPlan unknown;
  unknown.workload = "nothing";
  CHECK_FALSE(simulate(unknown).violations.empty());
}

TEST_CASE("plans differ from seed to seed") {
  CHECK(random_plan(1).to_json() == random_plan(1).to_json());
  CHECK(random_plan(1).to_json() != random_plan(2).to_json());
}

TEST_CASE("a failing plan is shown without what it fails without as well") {
  FaultPlan plan = random_plan(1);
  plan.rates = {.lose_answer = 0.01, .crash_per_second = 0.02};
  plan.operators = 2;
  plan.operator_skew_seconds = 60;
  using Place = nlohmann::json::json_pointer;
  plan.damages = {{"a", Place("/spec"), 1}, {"b", Place("/spec"), 2}, {"c", Place("/spec"), 3}};
  const auto simplest = simplest_failing(plan, [](const FaultPlan& tried) {
    return tried.rates.crash_per_second > 0 && std::any_of(tried.damages.begin(), tried.damages.end(),
                                                           [](const auto& damage) { return damage.object == "b"; });
  });
  CHECK(simplest.damages.size() == 1);
  CHECK(simplest.rates.crash_per_second == 0.02);
  CHECK(simplest.rates.lose_answer == 0);
  CHECK(simplest.operators == 1);
  CHECK(simplest.operator_skew_seconds == 0);
  CHECK(simplest_failing(plan, [](const FaultPlan&) { return false; }).to_json() == plan.to_json());
}

}  // namespace
}  // namespace sluice::simulation
