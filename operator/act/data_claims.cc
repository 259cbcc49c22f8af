#include "operator/act/data_claims.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/api/persistent_volume_claim.h"
#include "operator/api/trainer_data.h"

namespace sluice::act {

namespace {

// A claim's access modes never change, but another claim of the same name may follow it.
constexpr auto kBelievedFor = std::chrono::minutes(5);
constexpr std::size_t kMaxKnown = 20000;

std::string hindrance_of(bool serves_several_nodes) {
  return serves_several_nodes ? "" : "which one node at a time can mount";
}

}  // namespace

DataClaims::DataClaims(Read read, const Clock& clock) : read_(std::move(read)), clock_(clock) {}

Result<std::string> DataClaims::unshared_data(const api::TrainingJob& training_job, std::stop_token stop) {
  const bool over = training_job.succeeded() || training_job.failed() || training_job.deleting();
  if (over || !training_job.wants_workers()) return std::string();
  for (const api::MountedClaim& mounted : api::mounted_claims(training_job)) {
    SLUICE_TRY(const std::string reason, hindrance({training_job.name_space(), mounted.claim}, stop));
    if (!reason.empty()) return api::data_in_claim(mounted, reason);
  }
  return std::string();
}

Result<std::string> DataClaims::hindrance(const kube::ObjectKey& claim, std::stop_token stop) {
  std::optional<Known> known;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = known_.find(claim); found != known_.end()) known = found->second;
  }
  if (known && clock_.now() - known->read_at < kBelievedFor) return hindrance_of(known->serves_several_nodes);
  const auto object = read_(api::kPersistentVolumeClaims, claim, std::move(stop));
  if (!object.ok() && object.error().code() == ErrorCode::kNotFound) {
    std::lock_guard lock(mutex_);
    known_.erase(claim);
    return std::string();
  }
  if (!object.ok() && known) return hindrance_of(known->serves_several_nodes);
  if (!object.ok() && object.error().code() == ErrorCode::kPermissionDenied)
    return "whose access modes the operator may not read (" + object.error().message() + ")";
  if (!object.ok()) return object.error();
  const bool serves_several_nodes = api::PersistentVolumeClaim(*object).serves_several_nodes();
  std::lock_guard lock(mutex_);
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[claim] = {serves_several_nodes, clock_.now()};
  return hindrance_of(serves_several_nodes);
}

}  // namespace sluice::act
