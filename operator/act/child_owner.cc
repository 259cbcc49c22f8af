#include "operator/act/child_owner.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object.h"

namespace sluice::act {

using namespace api;

namespace {

// As kubectl leaves them: `kubectl delete trainingjob --cascade=orphan`.
std::string of_an_orphan(const Object& job) {
  return "is left of an earlier TrainingJob of this name, which was deleted without its children (--cascade=orphan), "
         "and has no owner now; rename this TrainingJob, or delete all that is left, which ends the training in it: "
         "kubectl delete -n " +
         job.name_space() + " jobs,services,secrets,dataworkerpools,networkpolicies -l " + std::string(kJobLabel) +
         "=" + job.name();
}

std::string whose(const Object& job, const Object& child, std::string_view kind) {
  const Object::Controller owner = child.controller();
  const std::string remove = "kubectl delete -n " + job.name_space() + " " + std::string(kind) + " " + child.name();
  if (owner.kind == kTrainingJobKind && owner.name == job.name())
    return "belongs to an earlier TrainingJob of this name and goes with it; should it stay: " + remove;
  if (!owner.kind.empty())
    return "exists and belongs to " + owner.kind + " " + owner.name + "; delete it or rename the TrainingJob";
  const bool was_ours = child.label(kJobLabel) == job.name() && child.label(kManagedByLabel) == kOperatorManager;
  return was_ours ? of_an_orphan(job)
                  : "exists and was not made by Sluice; delete it (" + remove + ") or rename the TrainingJob";
}

}  // namespace

Result<void> check_owner(const nlohmann::json& training_job, const nlohmann::json& child, std::string_view kind) {
  const Object job(training_job), object(child);
  if (object.controlled_by(job)) return {};
  return Error(ErrorCode::kAlreadyExists, std::string(kind) + " " + object.name() + " " + whose(job, object, kind));
}

}  // namespace sluice::act
