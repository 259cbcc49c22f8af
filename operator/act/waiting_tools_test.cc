// What tools make of a TrainingJob's conditions that wait for it.
#include <nlohmann/json.hpp>

#include "operator/act/status.h"
#include "operator/api/conditions.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using control::testing::condition;
using control::testing::job_with_ready_pods;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

constexpr const char* kNow = "2026-01-01T03:00:00Z";

TrainingJobWorld waited_for(json job = training_job()) {
  return {shared(std::move(job)), shared(job_with_ready_pods(1)), nullptr, nullptr, nullptr};
}

json waited_status(const StatusStep& step) {
  REQUIRE(step.action.has_value());
  return step.action->body.at("status");
}

TEST_CASE("a suspended job says how to go on") {
  json job = training_job();
  job["spec"]["suspend"] = true;
  const json status = waited_status(reconcile_status(waited_for(job), nullptr, nullptr, kNow));
  const auto ready = api::find_condition(status.at("conditions"), "Ready");
  CHECK(ready.is_true());
  CHECK(ready.reason == "Suspended");
  CHECK(ready.message == "spec.suspend is true; set it to false to go on");
}

TEST_CASE("a job that goes on after a suspension has started") {
  json job = training_job();
  job["spec"]["suspend"] = true;
  json went_on = job;
  went_on["status"] = waited_status(reconcile_status(waited_for(job), nullptr, nullptr, kNow));
  went_on["spec"]["suspend"] = false;
  const StatusStep step = reconcile_status(waited_for(went_on), nullptr, nullptr, kNow);
  REQUIRE(step.events.size() == 1);
  CHECK(step.events[0].reason == "TrainerStarted");
  CHECK(step.urgent);
}

// What kstatus (kubernetes-sigs/cli-utils, pkg/kstatus) makes of an object of a kind that it does not know. Flux and
// others wait for it.
std::string kstatus(const json& status) {
  if (api::find_condition(status.at("conditions"), "Stalled").is_true()) return "Failed";
  return api::find_condition(status.at("conditions"), "Ready").is_true() ? "Current" : "InProgress";
}

TEST_CASE("tools that wait for a job wait as long as something is to come") {
  TrainingJobWorld world = waited_for();
  std::optional<Error> error;
  const auto told = [&] {
    return kstatus(waited_status(reconcile_status(world, nullptr, error ? &*error : nullptr, kNow)));
  };
  json job = job_with_ready_pods(0);
  SECTION("it runs") { CHECK(told() == "Current"); }
  SECTION("its Job is being made") {
    world.job = nullptr;
    CHECK(told() == "InProgress");
  }
  SECTION("its pods are not ready") {
    world.job = shared(job);
    CHECK(told() == "InProgress");
  }
  SECTION("another controller has suspended its Job") {
    job["spec"]["suspend"] = true;
    job["metadata"]["annotations"]["sluice.dev/suspend"] = "false";
    world.job = shared(job);
    CHECK(told() == "InProgress");
  }
  SECTION("it is suspended") {
    json suspended = training_job();
    suspended["spec"]["suspend"] = true;
    world.training_job = shared(suspended);
    CHECK(told() == "Current");
  }
  SECTION("it has succeeded") {
    job["status"]["conditions"] = json::array({condition("Complete", "True")});
    world.job = shared(job);
    CHECK(told() == "Current");
  }
  SECTION("it has failed") {
    job["status"]["conditions"] = {
        {{"type", "Failed"}, {"status", "True"}, {"reason", "BackoffLimitExceeded"}, {"message", "too often"}}};
    world.job = shared(job);
    CHECK(told() == "Failed");
  }
  SECTION("only a person can change what keeps it") {
    world.job = nullptr;
    error = Error(ErrorCode::kInvalidArgument, "image: Required value");
    CHECK(told() == "Failed");
    error = Error(ErrorCode::kAlreadyExists, "Job vision belongs to another owner");
    CHECK(told() == "Failed");
  }
  SECTION("a refusal that may pass by itself") {
    world.job = nullptr;
    error = Error(ErrorCode::kPermissionDenied, "exceeded quota");
    CHECK(told() == "InProgress");
  }
}

}  // namespace
}  // namespace sluice::act
