#include "operator/api/trainer_job.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/trainer_template.h"

namespace sluice::api {
namespace {

std::optional<bool> truth_of(const std::string& said) {
  if (said != "true" && said != "false") return std::nullopt;
  return said == "true";
}

}  // namespace

bool TrainerJob::suspended() const { return boolean_field(object(), "/spec/suspend"); }
std::int64_t TrainerJob::completions() const { return integer_field(object(), "/spec/completions"); }
const nlohmann::json& TrainerJob::pod_template() const { return field(object(), "/spec/template"); }

std::set<std::int64_t> TrainerJob::host_ports() const {
  const nlohmann::json& pod = field(object(), "/spec/template/spec");
  return boolean_field(pod, "/hostNetwork") ? declared_ports(pod) : std::set<std::int64_t>();
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

}  // namespace sluice::api
