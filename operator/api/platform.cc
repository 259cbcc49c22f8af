#include "operator/api/platform.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/api/object.h"
#include "operator/api/pod.h"

namespace sluice::api {
namespace {

using nlohmann::json;

Result<void> check_system(const json& selector, const std::string& path) {
  const json& asked = member(selector, kLinux.name);
  if (asked.is_null() || asked == kLinux.value) return {};
  return invalid_argument(path + " must not ask for nodes of another system than " + std::string(kLinux.value) +
                          ", for which Sluice's programs are; take it out, or set spec.mode to \"Off\"");
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : " and ") + name;
  return list;
}

}  // namespace

std::string architecture_of(const TrainingJob& training_job, const std::vector<std::string>& architectures) {
  const std::string asked = text_member(PodSpec(training_job.trainer_pod()).node_selector(), kArchitectureLabel);
  return asked.empty() ? architectures.front() : asked;
}

Result<void> check_platform(const TrainingJob& training_job, const std::vector<std::string>& architectures) {
  if (training_job.mode() == "Off") return {};
  const std::string job = training_job.key().to_string();
  const std::string of_trainer = job + " spec.trainer.template.spec.nodeSelector";
  const std::string of_workers = job + " spec.dataWorkers.template.spec.nodeSelector";
  const json& workers = member(member(training_job.worker_template(), "spec"), "nodeSelector");
  SLUICE_TRY_VOID(check_system(PodSpec(training_job.trainer_pod()).node_selector(), of_trainer));
  SLUICE_TRY_VOID(check_system(workers, of_workers));

  const std::string architecture = architecture_of(training_job, architectures);
  if (std::find(architectures.begin(), architectures.end(), architecture) == architectures.end())
    return invalid_argument(of_trainer + " asks for nodes of " + architecture + ", and Sluice's image is for " +
                            list_of(architectures) +
                            "; list all that it is for in the chart's image.architectures, or set spec.mode to "
                            "\"Off\" to train without Sluice");
  if (const json& asked = member(workers, kArchitectureLabel); !asked.is_null() && asked != architecture)
    return invalid_argument(of_workers + " must not ask for another " + std::string(kArchitectureLabel) +
                            " than the trainer's, which is " + architecture + "; take it out");
  return {};
}

}  // namespace sluice::api
