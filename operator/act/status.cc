#include "operator/act/status.h"

#include <nlohmann/json.hpp>

#include "operator/act/conditions.h"
#include "operator/act/observed.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "scheduler/plan.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::field;
using observe::integer_field;
using observe::text_field;

namespace {

// How long a job may be unmeasured before people are told: one that has been measured, and one that still starts.
constexpr double kMetricsGraceSeconds = 20;
constexpr double kFirstMetricsGraceSeconds = 300;

// The trainer as its Job shows it.
struct Trainer {
  std::int64_t replicas = 1;
  std::int64_t ready = 0;
  std::int64_t done = 0;  // succeeded
  bool exists = false;
  bool suspended = false;
  bool succeeded = false;
  bool failed = false;
  std::string failure_reason;
  std::string failure_message;

  bool over() const { return succeeded || failed; }
};

Trainer view_trainer(const TrainingJobWorld& world) {
  Trainer trainer;
  const json& training_job = *world.training_job;
  trainer.replicas = integer_field(training_job, "/spec/trainer/replicas", 1);
  trainer.suspended = observe::boolean_field(training_job, "/spec/suspend");
  // What was once written stays true, should the Job be cleaned away.
  trainer.succeeded = observe::condition_is_true(training_job, "Succeeded");
  trainer.failed = observe::condition_is_true(training_job, "Failed");
  if (!world.job || !observe::controlled_by(*world.job, training_job)) return trainer;
  trainer.exists = true;
  trainer.ready = integer_field(*world.job, "/status/ready");
  trainer.done = integer_field(*world.job, "/status/succeeded");
  const json& conditions = field(*world.job, "/status/conditions");
  if (!conditions.is_array()) return trainer;
  for (const json& condition : conditions) {
    if (text_field(condition, "/status") != "True") continue;
    if (text_field(condition, "/type") == "Complete") trainer.succeeded = true;
    if (text_field(condition, "/type") != "Failed") continue;
    trainer.failed = true;
    trainer.failure_reason = text_field(condition, "/reason");
    trainer.failure_message = text_field(condition, "/message");
  }
  return trainer;
}

// Errors that a person must act on. The others pass by themselves and change nothing in the status.
std::optional<Condition> refused(const Error* error) {
  if (error == nullptr) return std::nullopt;
  const auto not_ready = [&](std::string reason) {
    return Condition{"Ready", Truth::kFalse, std::move(reason), error->message()};
  };
  if (error->code() == ErrorCode::kAlreadyExists) return not_ready("ChildConflict");
  if (error->code() == ErrorCode::kInvalidArgument) return not_ready("SpecRefused");
  if (error->code() == ErrorCode::kPermissionDenied) return not_ready("Forbidden");
  return std::nullopt;
}

Condition ready_condition(const Trainer& trainer, const Error* child_error) {
  if (trainer.over()) return {"Ready", Truth::kFalse, "Finished", "the trainer has finished"};
  if (auto condition = refused(child_error)) return *condition;
  if (trainer.suspended) return {"Ready", Truth::kFalse, "Suspended", "spec.suspend is true; set it to false to go on"};
  if (!trainer.exists) return {"Ready", Truth::kFalse, "TrainerStarting", "the trainer's Job is being created"};
  const std::string count = std::to_string(trainer.ready) + " of " + std::to_string(trainer.replicas) +
                            " trainer pods are ready, " + std::to_string(trainer.done) + " are done";
  const bool running = trainer.ready > 0 && trainer.ready + trainer.done >= trainer.replicas;
  return {"Ready", running ? Truth::kTrue : Truth::kFalse, running ? "TrainerRunning" : "TrainerNotReady", count};
}

std::vector<Condition> outcome_conditions(const Trainer& trainer, const json& training_job) {
  std::vector<Condition> conditions;
  if (trainer.succeeded)
    conditions.push_back({"Succeeded", Truth::kTrue, "TrainerSucceeded", "all trainer pods have succeeded"});
  else
    conditions.push_back({"Succeeded", Truth::kFalse, trainer.failed ? "TrainerFailed" : "NotFinished", ""});
  if (!trainer.failed) {
    conditions.push_back({"Failed", Truth::kFalse, "NotFailed", ""});
  } else if (!trainer.failure_reason.empty()) {
    conditions.push_back({"Failed", Truth::kTrue, trainer.failure_reason, trainer.failure_message});
  } else {  // the Job is gone; keep what it said
    Condition kept{"Failed", Truth::kTrue, "TrainerFailed", "the trainer has failed"};
    for (const json& before : field(training_job, "/status/conditions"))
      if (text_field(before, "/type") == "Failed") kept.message = text_field(before, "/message");
    conditions.push_back(std::move(kept));
  }
  return conditions;
}

Condition metrics_condition(const Trainer& trainer, const decide::JobDecision* decision) {
  if (trainer.over()) return {"MetricsAvailable", Truth::kUnknown, "Finished", "a finished job is not measured"};
  if (decision == nullptr) return {"MetricsAvailable", Truth::kUnknown, "NoDecisionYet", ""};
  if (decision->plan.metrics_usable) return {"MetricsAvailable", Truth::kTrue, "Measured", ""};
  if (decision->plan.reason == scheduler::Reason::kNotRunning)
    return {"MetricsAvailable", Truth::kUnknown, "NotRunning", "there is nothing to measure before the trainer runs"};
  if (decision->plan.reason == scheduler::Reason::kModeOff)
    return {"MetricsAvailable", Truth::kUnknown, "ModeOff", "mode Off: the job's own loader is not measured"};
  // The series of a job that ends are away before its Job says so, those of one that starts come with its first steps:
  // that alarms nobody.
  const double grace_seconds = decision->plan.was_measured ? kMetricsGraceSeconds : kFirstMetricsGraceSeconds;
  if (decision->plan.unmeasured_seconds < grace_seconds)
    return {"MetricsAvailable", Truth::kUnknown, "Waiting", decision->plan.metrics_problem};
  return {"MetricsAvailable", Truth::kFalse, "NoMetrics", decision->plan.metrics_problem};
}

Condition data_bound_condition(const Trainer& trainer, const std::string& bottleneck) {
  if (trainer.over()) return {"DataBound", Truth::kUnknown, "Finished", ""};
  if (bottleneck.empty() || bottleneck == "Unknown") return {"DataBound", Truth::kUnknown, "Unknown", ""};
  return {"DataBound", bottleneck == "NotDataBound" || bottleneck == "GpuBound" ? Truth::kFalse : Truth::kTrue,
          bottleneck, ""};
}

void add_transitions(std::vector<kube::Event>& events, const json& training_job,
                     const std::vector<Condition>& conditions) {
  const auto add = [&](kube::EventType type, std::string reason, std::string action, const std::string& note) {
    events.push_back({kube::kTrainingJobs, kube::key_of(training_job), text_field(training_job, "/metadata/uid"), type,
                      std::move(reason), std::move(action), note});
  };
  for (const Condition& condition : conditions) {
    const std::string before = condition_status(training_job, condition.type);
    const bool became_true = condition.status == Truth::kTrue && before != "True";
    if (condition.type == "Ready" && became_true)
      add(kube::EventType::kNormal, "TrainerStarted", "Start", condition.message);
    if (condition.type == "Succeeded" && became_true)
      add(kube::EventType::kNormal, "TrainerFinished", "Finish", condition.message);
    if (condition.type == "Failed" && became_true)
      add(kube::EventType::kWarning, "TrainerFailed", "Finish", condition.reason + ": " + condition.message);
    if (condition.type == "MetricsAvailable" && condition.status == Truth::kFalse && before != "False")
      add(kube::EventType::kWarning, "MetricsLost", "Measure", condition.message);
    if (condition.type == "MetricsAvailable" && became_true && before == "False")
      add(kube::EventType::kNormal, "MetricsRecovered", "Measure", "the job is measured again");
    const bool refusal =
        condition.reason == "ChildConflict" || condition.reason == "SpecRefused" || condition.reason == "Forbidden";
    if (condition.type == "Ready" && refusal) {
      bool known = false;
      for (const json& old : field(training_job, "/status/conditions"))
        known = known || (text_field(old, "/type") == "Ready" && text_field(old, "/reason") == condition.reason);
      if (!known) add(kube::EventType::kWarning, condition.reason, "Create", condition.message);
    }
  }
}

json worker_counts(const TrainingJobWorld& world, const decide::JobDecision* decision, bool over) {
  const json none;
  const json& pool = world.pool ? *world.pool : none;
  json workers = {{"desired", integer_field(pool, "/spec/replicas")},
                  {"ready", integer_field(pool, "/status/readyReplicas")}};
  if (over)
    workers["recommended"] = 0;
  else if (decision != nullptr)
    workers["recommended"] = decision->plan.recommended;
  else if (const json& before = field(*world.training_job, "/status/workers/recommended"); !before.is_null())
    workers["recommended"] = before;
  return workers;
}

}  // namespace

StatusStep reconcile_status(const TrainingJobWorld& world, const decide::JobDecision* decision,
                            const Error* child_error, std::string_view now) {
  StatusStep step;
  const json& training_job = *world.training_job;
  if (!field(training_job, "/metadata/deletionTimestamp").is_null()) return step;
  if (decision != nullptr && decision->job_uid != text_field(training_job, "/metadata/uid")) decision = nullptr;

  const Trainer trainer = view_trainer(world);
  const json& before = field(training_job, "/status");
  json status = json::object();
  status["observedGeneration"] = integer_field(training_job, "/metadata/generation");
  status["workers"] = worker_counts(world, decision, trainer.over());
  render_observed(status, before, trainer.over() ? nullptr : decision);
  if (trainer.over())
    status["explanation"] = std::string("The trainer has ") + (trainer.succeeded ? "succeeded" : "failed") +
                            "; it needs no more data workers.";

  std::vector<Condition> conditions = {ready_condition(trainer, child_error)};
  for (Condition& condition : outcome_conditions(trainer, training_job)) conditions.push_back(std::move(condition));
  conditions.push_back(metrics_condition(trainer, decision));
  conditions.push_back(data_bound_condition(trainer, text_field(status, "/bottleneck")));
  status["conditions"] = render_conditions(conditions, field(before, "/conditions"),
                                           integer_field(training_job, "/metadata/generation"), now);
  if (status == before) return step;

  kube::Action action{kube::Verb::kApplyStatus,
                      kube::kTrainingJobs,
                      kube::key_of(training_job),
                      {{"status", std::move(status)}},
                      std::string(kOperatorManager)};
  action.uid = text_field(training_job, "/metadata/uid");
  // What is said here is true of what was seen, not of what somebody (a new leader, too) has written since.
  action.version = text_field(training_job, "/metadata/resourceVersion");
  step.action = std::move(action);
  step.urgent = std::any_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    return condition_status(training_job, condition.type) != text_of(condition.status);
  });
  add_transitions(step.events, training_job, conditions);
  return step;
}

}  // namespace sluice::act
