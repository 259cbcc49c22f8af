#include "operator/act/status.h"

#include <nlohmann/json.hpp>

#include "operator/act/cluster_seams.h"
#include "operator/act/fitted_resources.h"
#include "operator/act/observed.h"
#include "operator/act/trainer_obstacle.h"
#include "operator/api/conditions.h"
#include "operator/api/data_worker_pool.h"
#include "operator/api/gang_restart.h"
#include "operator/api/names.h"
#include "operator/api/status_draft.h"
#include "operator/api/trainer_data.h"
#include "operator/api/trainer_job.h"
#include "operator/api/training_job.h"
#include "scheduler/model/plan.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

// The time without a measurement after which people are told: of a job that has been measured, and of one that starts.
constexpr double kMetricsGraceSeconds = 20;
constexpr double kFirstMetricsGraceSeconds = 300;
// Before what is refused to a trainer that runs.
constexpr std::string_view kNotDone = "; not done: ";
constexpr const char* kTrainerRunning = "TrainerRunning";

// The trainer as its Job shows it.
struct Trainer {
  std::int64_t replicas = 1;
  std::int64_t ready = 0;
  std::int64_t done = 0;  // succeeded
  bool exists = false;
  bool suspended = false;
  bool queued = false;  // another controller or a person has suspended its Job
  bool restarting = false;
  std::int64_t restarts = 0;
  std::int64_t backoff_limit = 0;
  bool succeeded = false;
  bool failed = false;
  std::string failure_reason;
  std::string failure_message;
  std::string obstacle;  // why a pod of it cannot start, in words; empty: none is known
  std::string left_pod;  // of an earlier Job

  bool over() const { return succeeded || failed; }
};

Trainer view_trainer(const TrainingJobWorld& world) {
  Trainer trainer;
  const TrainingJob training_job(*world.training_job);
  trainer.replicas = training_job.trainer_replicas();
  trainer.suspended = training_job.suspended();
  trainer.restarts = training_job.restarts();
  trainer.backoff_limit = training_job.backoff_limit();
  // An end that the status tells of stays true when the Job is cleaned away.
  trainer.succeeded = training_job.succeeded();
  trainer.failed = training_job.failed();
  trainer.left_pod = left_trainer_pod(world);
  if (!world.job) return trainer;
  const TrainerJob job(*world.job);
  if (!job.controlled_by(training_job)) return trainer;
  trainer.exists = true;
  trainer.queued = job.suspended() && !job.asked_to_suspend().value_or(true);
  trainer.ready = job.ready();
  trainer.done = job.succeeded();
  trainer.obstacle = trainer_obstacle(job, world.trainer_pods, objection_to_trainers(world));
  trainer.succeeded = trainer.succeeded || job.complete();
  if (job.failed_by_pods()) {
    const auto view = view_training_job(*world.training_job);
    trainer.restarting = view.ok() && will_restart(*view, job);
  }
  if (trainer.restarting) {
    trainer.restarts = std::max(trainer.restarts, job.restarts() + 1);
    return trainer;
  }
  if (const SeenCondition failed = find_condition(job.conditions(), "Failed"); failed.is_true()) {
    trainer.failed = true;
    trainer.failure_reason = failed.reason;
    trainer.failure_message = failed.message;
    if (trainer.restarts > 0)
      trainer.failure_message +=
          "; all trainer pods had been started again " + std::to_string(trainer.restarts) + " times";
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
  if (error->code() == ErrorCode::kInvalidArgument) return not_ready(kSpecRefused);
  if (error->code() == ErrorCode::kPermissionDenied) return not_ready("Forbidden");
  return std::nullopt;
}

std::string held_up(const Error* error) {
  if (error == nullptr || !is_of_webhook(*error)) return "";
  return "; it is tried again and again, and the last time " + error->message();
}

std::string restart_note(const Trainer& trainer) {
  return "a trainer pod failed: all " + std::to_string(trainer.replicas) + " are started again, restart " +
         std::to_string(trainer.restarts) + " of at most " + std::to_string(trainer.backoff_limit);
}

// True where the job is as its spec asks, so also when it is done or suspended: tools such as Flux wait for it.
Condition ready_condition(const Trainer& trainer, const Error* child_error, const std::string& message_before) {
  if (trainer.over())
    return {"Ready", trainer.succeeded ? Truth::kTrue : Truth::kFalse, "Finished", "the trainer has finished"};
  const std::string count = std::to_string(trainer.ready) + " of " + std::to_string(trainer.replicas) +
                            " trainer pods are ready, " + std::to_string(trainer.done) + " are done";
  const bool runs = trainer.exists && trainer.ready > 0 && trainer.ready + trainer.done >= trainer.replicas;
  // What a quota or our rights refuse to a trainer that runs, as its workers' NetworkPolicy, does not stop it.
  if (runs && child_error != nullptr && child_error->code() == ErrorCode::kPermissionDenied)
    return {"Ready", Truth::kTrue, kTrainerRunning, count + std::string(kNotDone) + child_error->message()};
  if (auto condition = refused(child_error)) return *condition;
  if (trainer.suspended) return {"Ready", Truth::kTrue, "Suspended", "spec.suspend is true; set it to false to go on"};
  if (trainer.restarting) return {"Ready", Truth::kFalse, "TrainerRestarting", restart_note(trainer)};
  if (!trainer.exists && !trainer.left_pod.empty())
    return {"Ready", Truth::kFalse, "TrainerStarting",
            "pod " + trainer.left_pod +
                " of an earlier Job still runs; the trainer starts when it has ended or is deleted"};
  if (!trainer.exists)
    return {"Ready", Truth::kFalse, "TrainerStarting", "the trainer's Job is being created" + held_up(child_error)};
  if (trainer.queued)
    return {"Ready", Truth::kFalse, "Queued",
            "another controller, such as Kueue, has suspended the trainer's Job; it starts when that one lets it"};
  if (runs) return {"Ready", Truth::kTrue, kTrainerRunning, count};
  return {"Ready", Truth::kFalse, "TrainerNotReady", with_obstacle(count, trainer.obstacle, message_before)};
}

// What only a person can change. By the condition of this name, tools give up waiting; its absence means False.
std::optional<Condition> stalled_condition(const Condition& ready, const std::vector<Condition>& outcome) {
  if (ready.reason == kSpecRefused || ready.reason == "ChildConflict")
    return Condition{"Stalled", Truth::kTrue, ready.reason, ready.message};
  for (const Condition& condition : outcome)
    if (condition.type == "Failed" && condition.status == Truth::kTrue)
      return Condition{"Stalled", Truth::kTrue, condition.reason, condition.message};
  return std::nullopt;
}

std::vector<Condition> outcome_conditions(const Trainer& trainer, const TrainingJob& training_job) {
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
    conditions.push_back(
        {"Failed", Truth::kTrue, "TrainerFailed", find_condition(training_job.conditions(), "Failed").message});
  }
  return conditions;
}

Condition metrics_condition(const Trainer& trainer, const decide::JobDecision* decision) {
  if (trainer.over()) return {"MetricsAvailable", Truth::kUnknown, "Finished", "a finished job is not measured"};
  if (decision == nullptr) return {"MetricsAvailable", Truth::kUnknown, "NoDecisionYet", ""};
  if (decision->plan.estimate.metrics_usable()) return {"MetricsAvailable", Truth::kTrue, "Measured", ""};
  if (decision->plan.reason == scheduler::Reason::kNotRunning)
    return {"MetricsAvailable", Truth::kUnknown, "NotRunning", "there is nothing to measure before the trainer runs"};
  if (decision->plan.reason == scheduler::Reason::kModeOff)
    return {"MetricsAvailable", Truth::kUnknown, "ModeOff", "mode Off: the job's own loader is not measured"};
  // The series of a job that ends are away before its Job says so. Those of a job that starts come with its first
  // steps. Neither is an alarm.
  const double grace_seconds =
      decision->plan.estimate.was_measured() ? kMetricsGraceSeconds : kFirstMetricsGraceSeconds;
  if (decision->plan.estimate.unmeasured_seconds < grace_seconds)
    return {"MetricsAvailable", Truth::kUnknown, "Waiting", decision->plan.estimate.metrics_problem};
  return {"MetricsAvailable", Truth::kFalse, "NoMetrics", decision->plan.estimate.metrics_problem};
}

Condition data_bound_condition(const Trainer& trainer, const std::string& bottleneck) {
  if (trainer.over()) return {"DataBound", Truth::kUnknown, "Finished", ""};
  if (bottleneck.empty() || bottleneck == "Unknown") return {"DataBound", Truth::kUnknown, "Unknown", ""};
  return {"DataBound", bottleneck == "NotDataBound" || bottleneck == "GpuBound" ? Truth::kFalse : Truth::kTrue,
          bottleneck, ""};
}

// The obstacle between the pool and its number of workers, if time alone does not pass it.
Condition blocked_condition(const Trainer& trainer, const TrainingJobWorld& world) {
  const TrainingJob training_job(*world.training_job);
  std::string data = data_only_in_trainer(training_job);
  if (data.empty()) data = world.unshared_data;
  if (training_job.wants_workers() && !trainer.over() && !data.empty())
    return {"WorkersBlocked", Truth::kTrue, kDataOnlyInTrainer, std::move(data)};
  if (world.pool && !trainer.over()) {
    const SeenCondition ready = find_condition(DataWorkerPool(*world.pool).conditions(), "Ready");
    if (ready.status == text_of(Truth::kFalse) && ready.reason != kScaling) {
      // The server's words name neither the container nor the field.
      const bool is_refused = ready.reason == "Forbidden" || ready.reason == kSpecRefused;
      const std::string objection = is_refused ? objection_to_workers(world) : "";
      return {"WorkersBlocked", Truth::kTrue, ready.reason,
              objection.empty() ? ready.message : objection + " (" + ready.message + ")"};
    }
  }
  return {"WorkersBlocked", Truth::kFalse, "NotBlocked", ""};
}

bool says_not_done(std::string_view message) { return message.find(kNotDone) != std::string_view::npos; }

void add_transitions(std::vector<kube::Event>& events, const TrainingJob& training_job,
                     const std::vector<Condition>& conditions) {
  const auto add = [&](kube::EventType type, std::string reason, std::string action, const std::string& note) {
    events.push_back({kube::kTrainingJobs, training_job.key(), training_job.uid(), type, std::move(reason),
                      std::move(action), note});
  };
  for (const Condition& condition : conditions) {
    const SeenCondition before = find_condition(training_job.conditions(), condition.type);
    const bool became_true = condition.status == Truth::kTrue && !before.is_true();
    if (condition.type == "Ready" && condition.status == Truth::kTrue && condition.reason == kTrainerRunning &&
        (became_true || before.reason != kTrainerRunning))
      add(kube::EventType::kNormal, "TrainerStarted", "Start", condition.message);
    if (condition.type == "Succeeded" && became_true)
      add(kube::EventType::kNormal, "TrainerFinished", "Finish", condition.message);
    if (condition.type == "Failed" && became_true)
      add(kube::EventType::kWarning, "TrainerFailed", "Finish", condition.reason + ": " + condition.message);
    if (condition.type == "MetricsAvailable" && condition.status == Truth::kFalse && before.status != "False")
      add(kube::EventType::kWarning, "MetricsLost", "Measure", condition.message);
    if (condition.type == "MetricsAvailable" && became_true && before.status == "False")
      add(kube::EventType::kNormal, "MetricsRecovered", "Measure", "the job is measured again");
    if (condition.type == "WorkersBlocked" && became_true)
      add(kube::EventType::kWarning, condition.reason, "Scale", condition.message);
    const bool refusal =
        condition.reason == "ChildConflict" || condition.reason == kSpecRefused || condition.reason == "Forbidden";
    if (condition.type == "Ready" && refusal && before.reason != condition.reason)
      add(kube::EventType::kWarning, condition.reason, "Create", condition.message);
    if (condition.type == "Ready" && says_not_done(condition.message) && !says_not_done(before.message))
      add(kube::EventType::kWarning, "Forbidden", "Create", condition.message);
  }
}

void set_workers(TrainingJobStatusDraft& status, const TrainingJobWorld& world, const decide::JobDecision* decision,
                 bool over) {
  const json none;
  const DataWorkerPool pool(world.pool ? *world.pool : none);
  std::optional<std::int64_t> recommended = TrainingJob(*world.training_job).recommended_workers();
  if (over)
    recommended = 0;
  else if (decision != nullptr)
    recommended = decision->plan.recommended;
  status.set_workers(pool.replicas(), pool.ready_replicas(), recommended);
}

}  // namespace

StatusStep reconcile_status(const TrainingJobWorld& world, const decide::JobDecision* decision,
                            const Error* child_error, std::string_view now) {
  StatusStep step;
  const TrainingJob training_job(*world.training_job);
  if (training_job.deleting()) return step;
  if (decision != nullptr && decision->job_uid != training_job.uid()) decision = nullptr;

  const Trainer trainer = view_trainer(world);
  TrainingJobStatusDraft status(training_job);
  set_workers(status, world, decision, trainer.over());
  if (trainer.restarts > 0) status.set_restarts(trainer.restarts);
  if (world.claimed_accelerators)
    status.set_claimed_accelerators(*world.claimed_accelerators);
  else
    status.keep_claimed_accelerators();
  render_observed(status, trainer.over() ? nullptr : decision);
  if (trainer.over())
    status.set_explanation(std::string("The trainer has ") + (trainer.succeeded ? "succeeded" : "failed") +
                           "; it needs no more data workers.");

  std::vector<Condition> conditions = {
      ready_condition(trainer, child_error, find_condition(training_job.conditions(), "Ready").message)};
  const std::vector<Condition> outcome = outcome_conditions(trainer, training_job);
  conditions.insert(conditions.end(), outcome.begin(), outcome.end());
  if (auto stalled = stalled_condition(conditions.front(), outcome)) conditions.push_back(*std::move(stalled));
  conditions.push_back(metrics_condition(trainer, decision));
  conditions.push_back(data_bound_condition(trainer, status.bottleneck()));
  conditions.push_back(blocked_condition(trainer, world));
  status.set_conditions(conditions, now);
  if (!status.is_news()) return step;

  kube::Action action{kube::Verb::kApplyStatus, kube::kTrainingJobs, training_job.key(), status.body(),
                      std::string(kOperatorManager)};
  action.uid = training_job.uid();
  // The statement holds for the objects as seen, not for later writes (a new leader's, too).
  action.version = training_job.resource_version();
  step.action = std::move(action);
  step.urgent =
      trainer.restarting || std::any_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
        const SeenCondition before = find_condition(training_job.conditions(), condition.type);
        const bool is_other_state = condition.status == Truth::kTrue && before.reason != condition.reason;
        return before.status != text_of(condition.status) || (condition.type == "Ready" && is_other_state);
      });
  add_transitions(step.events, training_job, conditions);
  if (trainer.restarts > training_job.restarts())
    step.events.push_back({kube::kTrainingJobs, training_job.key(), training_job.uid(), kube::EventType::kWarning,
                           "TrainerRestarted", "Restart", restart_note(trainer)});
  return step;
}

}  // namespace sluice::act
