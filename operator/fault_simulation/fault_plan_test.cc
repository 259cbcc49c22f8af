#include "operator/fault_simulation/fault_plan.h"

#include <nlohmann/json.hpp>

#include "operator/fault_simulation/simulation.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

TEST_CASE("a plan survives being a file") {
  FaultPlan plan = random_plan(42);
  plan.operator_skew_seconds = -600;
  plan.node_skew_seconds = 17;
  plan.perturbation = Perturbation{Perturbation::Kind::kUnobserved, 17, 23};
  const auto read = FaultPlan::from_json(plan.to_json());
  REQUIRE(read.ok());
  CHECK(read->to_json() == plan.to_json());
  CHECK(read->operator_skew_seconds == -600);
  CHECK(read->node_skew_seconds == 17);
  CHECK(read->perturbation->kind == Perturbation::Kind::kUnobserved);
}

TEST_CASE("a file that is no plan is refused") {
  for (const char* text : {"{}", R"({"workload": "starved"})", R"({"workload": "starved", "seed": "one"})",
                           R"({"workload": "starved", "seed": 1, "perturbation": {"pattern": "other", "at": 1}})"}) {
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

}  // namespace
}  // namespace sluice::simulation
