#include "operator/act/data_claims.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "operator/act/cluster_seams.h"
#include "operator/api/persistent_volume_claim.h"
#include "operator/api/trainer_data.h"

namespace sluice::act {

namespace {

// A claim's access modes never change, but another claim of the same name may follow it.
constexpr auto kBelievedFor = std::chrono::minutes(5);
constexpr std::size_t kMaxKnown = 20000;

bool is_over(const api::TrainingJob& training_job) {
  return training_job.succeeded() || training_job.failed() || training_job.deleting();
}

std::string hindrance_of(bool serves_several_nodes) {
  return serves_several_nodes ? "" : "which one node at a time can mount";
}

}  // namespace

DataClaims::DataClaims(Read read, const Clock& clock) : read_(std::move(read)), clock_(clock) {}

Result<std::string> DataClaims::unshared_data(const api::TrainingJob& training_job, std::stop_token stop) {
  if (is_over(training_job) || !training_job.wants_workers()) return std::string();
  for (const api::MountedClaim& mounted : api::mounted_claims(training_job)) {
    SLUICE_TRY(const std::string reason, hindrance({training_job.name_space(), mounted.claim}, stop));
    if (!reason.empty()) return api::data_in_claim(mounted, reason);
  }
  return std::string();
}

Result<api::ClaimUids> DataClaims::uids(const api::TrainingJob& training_job, std::stop_token stop) {
  api::ClaimUids uids;
  if (is_over(training_job)) return uids;
  for (const std::string& claim : api::claims_of_pods(training_job)) {
    const auto known = look_up({training_job.name_space(), claim}, stop);
    if (known.ok()) {
      uids[claim] = known->uid;
    } else if (may_pass_by_itself(known.error()) && known.error().code() != ErrorCode::kNotFound) {
      return known.error();
    }
  }
  return uids;
}

Result<std::string> DataClaims::hindrance(const kube::ObjectKey& claim, std::stop_token stop) {
  const auto known = look_up(claim, std::move(stop));
  if (known.ok()) return hindrance_of(known->serves_several_nodes);
  if (known.error().code() == ErrorCode::kNotFound) return std::string();
  if (known.error().code() == ErrorCode::kPermissionDenied)
    return "whose access modes the operator may not read (" + known.error().message() + ")";
  return known.error();
}

Result<DataClaims::Known> DataClaims::look_up(const kube::ObjectKey& claim, std::stop_token stop) {
  std::optional<Known> known;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = known_.find(claim); found != known_.end()) known = found->second;
  }
  if (known && clock_.now() - known->read_at < kBelievedFor) return *known;
  const auto object = read_(api::kPersistentVolumeClaims, claim, std::move(stop));
  if (!object.ok()) {
    if (object.error().code() != ErrorCode::kNotFound) return known ? Result<Known>(*known) : object.error();
    std::lock_guard lock(mutex_);
    known_.erase(claim);
    return object.error();
  }
  const api::PersistentVolumeClaim read(*object);
  Known fresh{read.serves_several_nodes(), read.uid(), clock_.now()};
  std::lock_guard lock(mutex_);
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[claim] = fresh;
  return fresh;
}

}  // namespace sluice::act
