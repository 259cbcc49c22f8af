#include "operator/act/status.h"

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using control::testing::condition;
using control::testing::job_with_ready_pods;
using control::testing::pool;
using control::testing::shared;
using control::testing::training_job;
using nlohmann::json;

constexpr const char* kWrittenAt = "2026-01-01T03:00:00Z";

json pool_with(int replicas, int ready) {
  json object = pool(replicas);
  object["status"]["readyReplicas"] = ready;
  return object;
}

TrainingJobWorld running(json job = training_job()) {
  return {shared(std::move(job)), shared(job_with_ready_pods(1)), nullptr, nullptr, shared(pool_with(3, 2))};
}

decide::JobDecision measured(double samples_per_second = 812) {
  decide::JobDecision decision;
  decision.job_uid = "uid-vision";
  decision.plan.workers = 3;
  decision.plan.recommended = 3;
  decision.plan.bottleneck = scheduler::Bottleneck::kDataBoundCpu;
  decision.plan.reason = scheduler::Reason::kNeedMet;
  decision.plan.explanation = "needs 3 workers for 920 samples/s";
  decision.plan.supply_ratio = 0.88;
  scheduler::Estimate& estimate = decision.plan.estimate;
  estimate.wait_share = 0.12;
  estimate.known = true;
  estimate.demand_samples_per_second = 920.4;
  estimate.local_rate_per_core = 1250;
  estimate.remote_rate_per_core = 1100;
  estimate.knee_cores = 0.79;
  estimate.confidence = scheduler::Confidence::kMeasured;
  estimate.memory.emplace().was_measured = true;
  decision.measurement.emplace();
  decision.measurement->samples_per_second = samples_per_second;
  decision.measurement->compute_share = 0.876;
  return decision;
}

decide::JobDecision without_metrics() {
  decide::JobDecision decision = measured();
  decision.measurement.reset();
  decision.plan.reason = scheduler::Reason::kNoMetrics;
  decision.plan.bottleneck = scheduler::Bottleneck::kUnknown;
  decision.plan.explanation = "holds 3 workers: Prometheus is down";
  decision.plan.estimate = {.metrics_problem = "Prometheus is down", .unmeasured_seconds = 60};
  decision.plan.estimate.memory.emplace().was_measured = true;
  return decision;
}

json status_of(const StatusStep& step) {
  REQUIRE(step.action.has_value());
  CHECK(step.action->verb == kube::Verb::kApplyStatus);
  CHECK(step.action->uid == "uid-vision");
  CHECK(step.action->version == "5");
  return step.action->body.at("status");
}

json condition_of(const json& status, const std::string& type) {
  for (const json& entry : status.at("conditions"))
    if (text_field(entry, "/type") == type) return entry;
  return nullptr;
}

std::string short_condition(const json& status, const std::string& type) {
  const json found = condition_of(status, type);
  return text_field(found, "/status") + "/" + text_field(found, "/reason");
}

std::vector<std::string> reasons(const StatusStep& step) {
  std::vector<std::string> result;
  for (const kube::Event& event : step.events) result.push_back(event.reason);
  return result;
}

// `job` with the status that the step wrote.
json after(json job, const StatusStep& step) {
  job["status"] = status_of(step);
  return job;
}

using Reasons = std::vector<std::string>;

TEST_CASE("a running, measured job shows the figures behind the decision, as integers") {
  const decide::JobDecision decision = measured();
  const json status = status_of(reconcile_status(running(), &decision, nullptr, kWrittenAt));
  CHECK(status["observed"] == json{{"samplesPerSecond", 812},
                                   {"demandSamplesPerSecond", 920},
                                   {"dataWaitPercent", 12},
                                   {"acceleratorUtilisationPercent", 88},
                                   {"localRatePerCore", 1250},
                                   {"remoteRatePerCore", 1100},
                                   {"kneeMilliCores", 790},
                                   {"supplyPercent", 88}});
  CHECK(status["workers"] == json{{"desired", 3}, {"ready", 2}, {"recommended", 3}});
  CHECK(status["bottleneck"] == "DataBoundCpu");
  CHECK(status["explanation"] == "needs 3 workers for 920 samples/s");
  CHECK(status["observedGeneration"] == 1);
  CHECK(short_condition(status, "Ready") == "True/TrainerRunning");
  CHECK(short_condition(status, "Succeeded") == "False/NotFinished");
  CHECK(short_condition(status, "Failed") == "False/NotFailed");
  CHECK(short_condition(status, "MetricsAvailable") == "True/Measured");
  CHECK(short_condition(status, "DataBound") == "True/DataBoundCpu");
  for (const json& entry : status["conditions"]) {
    CHECK(entry["lastTransitionTime"] == kWrittenAt);
    CHECK(entry["observedGeneration"] == 1);
  }
}

TEST_CASE("what keeps the workers from starting is told once, as condition and event, and then that it is over") {
  TrainingJobWorld world = running();
  json pool = *world.pool;
  const decide::JobDecision decision = measured();
  json blocked = condition("Ready", "False");
  blocked.update({{"reason", "ImagePullBackOff"}, {"message", "0 of 3 workers are ready: no such image"}});
  pool["status"]["conditions"] = json::array({blocked});
  world.pool = shared(pool);
  const StatusStep told = reconcile_status(world, &decision, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(told), "WorkersBlocked") == "True/ImagePullBackOff");
  CHECK_THAT(reasons(told), Catch::VectorContains(std::string("ImagePullBackOff")));
  CHECK(told.urgent);

  world.training_job = shared(after(*world.training_job, told));
  CHECK_FALSE(reconcile_status(world, &decision, nullptr, kWrittenAt).action);
  pool["status"]["conditions"][0]["reason"] = "Scaling";
  world.pool = shared(pool);
  CHECK(short_condition(status_of(reconcile_status(world, &decision, nullptr, kWrittenAt)), "WorkersBlocked") ==
        "False/NotBlocked");
}

TEST_CASE("data that is in the trainer's pod only is told of, where workers are wanted") {
  struct Case {
    const char* mode;
    const char* placement;
    const char* want;
  };
  const Case test =
      GENERATE(Case{"Auto", "Auto", "True/DataOnlyInTrainer"}, Case{"Off", "Auto", "False/NotBlocked"},
               Case{"Recommend", "Remote", "True/DataOnlyInTrainer"}, Case{"Auto", "Local", "False/NotBlocked"});
  json job = training_job();
  job["spec"]["mode"] = test.mode;
  job["spec"]["dataWorkers"]["placement"] = test.placement;
  job["spec"]["trainer"]["template"]["spec"]["initContainers"] =
      json::parse(R"([{"name": "fetch", "volumeMounts": [{"name": "scratch", "mountPath": "/d"}]}])");
  const StatusStep told = reconcile_status(running(job), nullptr, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(told), "WorkersBlocked") == test.want);
}

TEST_CASE("a claim that workers cannot mount is told of, with its event, and then that it is over") {
  TrainingJobWorld world = running();
  world.unshared_data = "the volume data is the claim photos";
  const StatusStep told = reconcile_status(world, nullptr, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(told), "WorkersBlocked") == "True/DataOnlyInTrainer");
  CHECK_THAT(reasons(told), Catch::VectorContains(std::string("DataOnlyInTrainer")));
  world.training_job = shared(after(*world.training_job, told));
  world.unshared_data = "";
  CHECK(short_condition(status_of(reconcile_status(world, nullptr, nullptr, kWrittenAt)), "WorkersBlocked") ==
        "False/NotBlocked");
}

TEST_CASE("the accelerators that a trainer's claims ask for are in the status, and stay there while nothing is known") {
  TrainingJobWorld world = running();
  world.claimed_accelerators = 8;
  const auto first = reconcile_status(world, nullptr, nullptr, kWrittenAt);
  json job = training_job();
  job["status"] = first.action.value().body["status"];
  CHECK(job["status"]["claimedAccelerators"] == 8);
  world = running(job);
  world.pool = shared(pool_with(4, 4));  // news
  const auto later = reconcile_status(world, nullptr, nullptr, kWrittenAt);
  CHECK(later.action.value().body["status"]["claimedAccelerators"] == 8);
}

TEST_CASE("a trainer whose Job another controller has suspended is queued") {
  TrainingJobWorld world = running();
  json job = *world.job;
  job["metadata"]["annotations"]["sluice.dev/suspend"] = "false";
  job["spec"]["suspend"] = true;
  job["status"] = json::object();
  world.job = shared(job);
  CHECK(short_condition(status_of(reconcile_status(world, nullptr, nullptr, kWrittenAt)), "Ready") == "False/Queued");
}

TEST_CASE("a new job has every condition from the first visit on") {
  const StatusStep step =
      reconcile_status({shared(training_job()), nullptr, nullptr, nullptr, nullptr}, nullptr, nullptr, kWrittenAt);
  const json status = status_of(step);
  CHECK(short_condition(status, "Ready") == "False/TrainerStarting");
  CHECK(short_condition(status, "MetricsAvailable") == "Unknown/NoDecisionYet");
  CHECK(short_condition(status, "DataBound") == "Unknown/Unknown");
  CHECK_FALSE(status.contains("observed"));
  CHECK(step.events.empty());
}

TEST_CASE("an unchanged status is not written again") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  CHECK_FALSE(reconcile_status(running(job), &decision, nullptr, "2026-01-01T04:00:00Z").action.has_value());
}

TEST_CASE("figures that tremble are not written; figures that move are") {
  const decide::JobDecision first = measured(812);
  const json job = after(training_job(), reconcile_status(running(), &first, nullptr, kWrittenAt));
  decide::JobDecision second = measured(830);
  second.plan.explanation = "needs 3 workers for 931 samples/s";
  CHECK_FALSE(reconcile_status(running(job), &second, nullptr, kWrittenAt).action.has_value());
  const decide::JobDecision third = measured(900);
  CHECK(status_of(reconcile_status(running(job), &third, nullptr, kWrittenAt))["observed"]["samplesPerSecond"] == 900);
  decide::JobDecision reworded = measured(812);
  reworded.plan.explanation = "no node has room for another worker";
  CHECK(status_of(reconcile_status(running(job), &reworded, nullptr, kWrittenAt))["explanation"] ==
        reworded.plan.explanation);
  decide::JobDecision capped = measured(812);
  capped.rare_scrapes = "Scraped too rarely.";
  capped.left_free = "5 % stays free.";
  capped.capped = "Its weight 400 counts as 100.";
  capped.feeder_problem = "No right to resize.";
  CHECK(status_of(reconcile_status(running(job), &capped, nullptr, kWrittenAt))["explanation"] ==
        "needs 3 workers for 920 samples/s Scraped too rarely. 5 % stays free. Its weight 400 counts as 100. No right "
        "to resize.");
}

TEST_CASE("a condition's transition time moves only with its status") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  const decide::JobDecision lost = without_metrics();
  const json status = status_of(reconcile_status(running(job), &lost, nullptr, "2026-01-01T04:00:00Z"));
  CHECK(condition_of(status, "Ready")["lastTransitionTime"] == kWrittenAt);
  CHECK(condition_of(status, "MetricsAvailable")["lastTransitionTime"] == "2026-01-01T04:00:00Z");
}

TEST_CASE("lost metrics keep the last good figures and say why") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  const decide::JobDecision lost = without_metrics();
  const StatusStep step = reconcile_status(running(job), &lost, nullptr, kWrittenAt);
  const json status = status_of(step);
  CHECK(short_condition(status, "MetricsAvailable") == "False/NoMetrics");
  CHECK(condition_of(status, "MetricsAvailable")["message"] == "Prometheus is down");
  CHECK(status["observed"] == job["status"]["observed"]);
  CHECK(status["explanation"] == "holds 3 workers: Prometheus is down");
  CHECK(reasons(step) == Reasons{"MetricsLost"});
  CHECK(reasons(reconcile_status(running(after(job, step)), &lost, nullptr, kWrittenAt)).empty());

  const StatusStep back = reconcile_status(running(after(job, step)), &decision, nullptr, kWrittenAt);
  CHECK(reasons(back) == Reasons{"MetricsRecovered"});
}

TEST_CASE("a job whose series are away for a moment, as when it ends, raises no alarm") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  decide::JobDecision missing = without_metrics();
  missing.plan.estimate.unmeasured_seconds = 19;
  const StatusStep waiting = reconcile_status(running(job), &missing, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(waiting), "MetricsAvailable") == "Unknown/Waiting");
  CHECK(waiting.events.empty());
  CHECK(reconcile_status(running(after(job, waiting)), &decision, nullptr, kWrittenAt).events.empty());
  missing.plan.estimate.unmeasured_seconds = 20;
  CHECK(reasons(reconcile_status(running(after(job, waiting)), &missing, nullptr, kWrittenAt)) ==
        Reasons{"MetricsLost"});
}

TEST_CASE("a job that takes minutes to its first step is not yet missed") {
  decide::JobDecision missing = without_metrics();
  missing.plan.estimate.memory.reset();
  missing.plan.estimate.unmeasured_seconds = 299;
  const StatusStep waiting = reconcile_status(running(), &missing, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(waiting), "MetricsAvailable") == "Unknown/Waiting");
  CHECK(reasons(waiting) == Reasons{"TrainerStarted"});
  missing.plan.estimate.unmeasured_seconds = 300;
  const json job = after(training_job(), waiting);
  CHECK(reasons(reconcile_status(running(job), &missing, nullptr, kWrittenAt)) == Reasons{"MetricsLost"});
}

TEST_CASE("a job in mode Off is not expected to have metrics") {
  decide::JobDecision off = without_metrics();
  off.plan.reason = scheduler::Reason::kModeOff;
  off.plan.estimate.unmeasured_seconds = 86400;
  const StatusStep step = reconcile_status(running(), &off, nullptr, kWrittenAt);
  CHECK(short_condition(status_of(step), "MetricsAvailable") == "Unknown/ModeOff");
  CHECK(reasons(step) == Reasons{"TrainerStarted"});
}

TEST_CASE("the last bottleneck outlives the trainer's last moments") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  decide::JobDecision stopping = without_metrics();
  stopping.plan.reason = scheduler::Reason::kNotRunning;
  const json status = status_of(reconcile_status(running(job), &stopping, nullptr, kWrittenAt));
  CHECK(status["bottleneck"] == "DataBoundCpu");
  CHECK(status["observed"] == job["status"]["observed"]);
}

TEST_CASE("an operator that has just started leaves the figures as they are") {
  const decide::JobDecision decision = measured();
  const json job = after(training_job(), reconcile_status(running(), &decision, nullptr, kWrittenAt));
  const json status = status_of(reconcile_status(running(job), nullptr, nullptr, kWrittenAt));
  for (const char* kept : {"observed", "bottleneck", "explanation", "workers"})
    CHECK(status[kept] == job["status"][kept]);
}

TEST_CASE("a decision for a namesake is not this job's") {
  decide::JobDecision decision = measured();
  decision.job_uid = "uid-of-the-one-before";
  CHECK_FALSE(status_of(reconcile_status(running(), &decision, nullptr, kWrittenAt)).contains("observed"));
}

TEST_CASE("start and finish are events, once") {
  const StatusStep start = reconcile_status(running(), nullptr, nullptr, kWrittenAt);
  CHECK(reasons(start) == Reasons{"TrainerStarted"});
  TrainingJobWorld world = running(after(training_job(), start));
  json job = job_with_ready_pods(0);
  SECTION("success") {
    job["status"]["conditions"] = json::array({condition("Complete", "True")});
    world.job = shared(job);
    const StatusStep finish = reconcile_status(world, nullptr, nullptr, kWrittenAt);
    CHECK(reasons(finish) == Reasons{"TrainerFinished"});
    CHECK(short_condition(status_of(finish), "Succeeded") == "True/TrainerSucceeded");
    CHECK(short_condition(status_of(finish), "Ready") == "True/Finished");
    CHECK(status_of(finish)["explanation"] == "The trainer has succeeded; it needs no more data workers.");
    // The Job may be cleaned away afterwards; the outcome stays.
    world.training_job = shared(after(*world.training_job, finish));
    world.job = nullptr;
    CHECK_FALSE(reconcile_status(world, nullptr, nullptr, kWrittenAt).action.has_value());
  }
  SECTION("failure") {
    job["status"]["conditions"] = {
        {{"type", "Failed"}, {"status", "True"}, {"reason", "BackoffLimitExceeded"}, {"message", "too often"}}};
    world.job = shared(job);
    const StatusStep finish = reconcile_status(world, nullptr, nullptr, kWrittenAt);
    CHECK(reasons(finish) == Reasons{"TrainerFailed"});
    CHECK(short_condition(status_of(finish), "Failed") == "True/BackoffLimitExceeded");
    CHECK(short_condition(status_of(finish), "Succeeded") == "False/TrainerFailed");
  }
}

TEST_CASE("what a person must act on is in the Ready condition and an event; what passes by itself is not") {
  struct Case {
    Error error;
    const char* want;
  };
  const Case test =
      GENERATE(Case{{ErrorCode::kAlreadyExists, "Job vision belongs to another owner"}, "False/ChildConflict"},
               Case{{ErrorCode::kInvalidArgument, "image: Required value"}, "False/SpecRefused"},
               Case{{ErrorCode::kPermissionDenied, "cannot create Jobs"}, "False/Forbidden"},
               Case{{ErrorCode::kUnavailable, "connection refused"}, "False/TrainerStarting"});
  const TrainingJobWorld world{shared(training_job()), nullptr, nullptr, nullptr, nullptr};
  const StatusStep step = reconcile_status(world, nullptr, &test.error, kWrittenAt);
  CHECK(short_condition(status_of(step), "Ready") == test.want);
  CHECK(step.events.size() == (test.error.code() == ErrorCode::kUnavailable ? 0u : 1u));
  const TrainingJobWorld again{shared(after(training_job(), step)), nullptr, nullptr, nullptr, nullptr};
  CHECK(reconcile_status(again, nullptr, &test.error, kWrittenAt).events.empty());
}

TEST_CASE("a trainer runs while one of its pods does and the others have done so") {
  struct Case {
    int ready;
    int done;
    const char* want;
  };
  const Case test = GENERATE(Case{0, 0, "False/TrainerNotReady"}, Case{1, 0, "False/TrainerNotReady"},
                             Case{2, 0, "True/TrainerRunning"}, Case{1, 1, "True/TrainerRunning"},
                             Case{0, 2, "False/TrainerNotReady"});
  json spec = training_job();
  spec["spec"]["trainer"]["replicas"] = 2;
  TrainingJobWorld world = running(spec);
  json job = job_with_ready_pods(test.ready);
  job["status"]["succeeded"] = test.done;
  world.job = shared(job);
  CHECK(short_condition(status_of(reconcile_status(world, nullptr, nullptr, kWrittenAt)), "Ready") == test.want);
}

TEST_CASE("a message is cut between characters, so that it stays UTF-8") {
  const std::string message = std::string(1023, 'x') + "\xC3\xA9";
  const json rendered = api::render_conditions({{"Ready", api::Truth::kFalse, "R", message}}, nullptr, 1, kWrittenAt);
  CHECK(text_field(rendered[0], "/message") == std::string(1023, 'x'));
  CHECK_NOTHROW(rendered.dump());
}

}  // namespace
}  // namespace sluice::act
