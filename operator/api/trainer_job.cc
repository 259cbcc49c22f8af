#include "operator/api/trainer_job.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {
namespace {

std::optional<bool> truth_of(const std::string& said) {
  if (said != "true" && said != "false") return std::nullopt;
  return said == "true";
}

std::string_view text_of(bool truth) { return truth ? "true" : "false"; }

}  // namespace

bool TrainerJob::suspended() const { return boolean_field(object(), "/spec/suspend"); }
std::int64_t TrainerJob::completions() const { return integer_field(object(), "/spec/completions"); }
const nlohmann::json& TrainerJob::pod_template() const { return field(object(), "/spec/template"); }
const nlohmann::json& TrainerJob::pod() const { return field(object(), "/spec/template/spec"); }

std::set<std::int64_t> TrainerJob::host_ports() const {
  return PodSpec(pod()).on_host_network() ? declared_ports(pod()) : std::set<std::int64_t>();
}

std::int64_t TrainerJob::active() const { return integer_field(object(), "/status/active"); }
std::int64_t TrainerJob::ready() const { return integer_field(object(), "/status/ready"); }
std::int64_t TrainerJob::succeeded() const { return integer_field(object(), "/status/succeeded"); }

bool TrainerJob::failed_by_pods() const {
  const SeenCondition failed = find_condition(conditions(), "Failed");
  return failed.is_true() && failed.reason == "BackoffLimitExceeded";
}

double TrainerJob::started_at_seconds() const { return time_field(object(), "/status/startTime"); }
double TrainerJob::failed_at_seconds() const { return find_condition(conditions(), "Failed").since_seconds(); }

std::int64_t TrainerJob::restarts() const {
  const std::string text = annotation(kRestartsAnnotation);
  std::int64_t restarts = 0;
  std::from_chars(text.data(), text.data() + text.size(), restarts);
  return restarts;
}

bool TrainerJob::removed_when_over() const { return !field(object(), "/spec/ttlSecondsAfterFinished").is_null(); }

std::optional<bool> TrainerJob::has_feeder() const { return truth_of(annotation(kFeederAnnotation)); }
std::optional<bool> TrainerJob::asked_to_suspend() const { return truth_of(annotation(kSuspendAnnotation)); }

TrainerJobDraft::TrainerJobDraft(std::string_view name_space, std::string_view name)
    : ObjectDraft(kube::kJobs, name_space, name) {
  spec() = {{"completionMode", "Indexed"}};
}

void TrainerJobDraft::set_pods(std::int64_t count, nlohmann::json pod_template) {
  spec()["completions"] = count;
  spec()["parallelism"] = count;
  spec()["template"] = std::move(pod_template);
}

void TrainerJobDraft::set_feeder(bool with_feeder) {
  metadata().set_annotation(kFeederAnnotation, text_of(with_feeder));
}

void TrainerJobDraft::set_suspended(bool suspended) {
  metadata().set_annotation(kSuspendAnnotation, text_of(suspended));
  spec()["suspend"] = suspended;
}

void TrainerJobDraft::set_restarts(std::int64_t restarts) {
  metadata().set_annotation(kRestartsAnnotation, std::to_string(restarts));
}

void TrainerJobDraft::take_over(const TrainingJob& training_job) {
  for (const std::string_view label : kQueueLabels)
    if (const std::string queue = training_job.label(label); !queue.empty()) metadata().set_label(label, queue);
  for (const char* name : {"backoffLimit", "activeDeadlineSeconds", "podFailurePolicy", "successPolicy"})
    if (const nlohmann::json& value = training_job.trainer_job_field(name); !value.is_null()) spec()[name] = value;
}

nlohmann::json suspension_patch(bool suspended) {
  return {{"metadata", {{"annotations", {{std::string(kSuspendAnnotation), text_of(suspended)}}}}},
          {"spec", {{"suspend", suspended}}}};
}

nlohmann::json removal_patch(const nlohmann::json& seconds_after_end) {
  return {{"spec", {{"ttlSecondsAfterFinished", seconds_after_end}}}};
}

}  // namespace sluice::api
