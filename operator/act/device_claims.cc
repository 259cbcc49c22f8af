#include "operator/act/device_claims.h"

#include <nlohmann/json.hpp>

#include "operator/act/cluster_seams.h"

namespace sluice::act {
namespace {

// What a claim asks for never changes, but another claim of the same name may follow it.
constexpr auto kClaimBelievedFor = std::chrono::minutes(5);
// One that is not there may come soon.
constexpr auto kAbsenceBelievedFor = std::chrono::minutes(1);
constexpr std::size_t kMostKnownClaims = 20000;
constexpr api::ClaimedDevices kOneDevice{1, 0};

}  // namespace

DeviceClaims::DeviceClaims(Read read, const Clock& clock) : read_(std::move(read)), clock_(clock) {}

std::optional<std::int64_t> DeviceClaims::accelerators(const api::TrainingJob& training_job, std::stop_token stop) {
  if (training_job.succeeded() || training_job.failed() || training_job.deleting()) return std::nullopt;
  const auto claims = api::device_claims_of_pod(training_job.trainer_pod());
  if (claims.empty()) return std::nullopt;
  api::ClaimedDevices sum;
  for (const api::DeviceClaim& claim : claims) {
    const auto devices = look_up(training_job.name_space(), claim, stop);
    if (!devices) return std::nullopt;
    sum.all += devices->all;
    sum.accelerators += devices->accelerators;
  }
  return sum.accelerators > 0 ? sum.accelerators : sum.all;
}

std::optional<api::ClaimedDevices> DeviceClaims::look_up(const std::string& name_space, const api::DeviceClaim& claim,
                                                         std::stop_token stop) {
  const Key key{claim.is_template, {name_space, claim.name}};
  {
    std::lock_guard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end() && clock_.now() < found->second.until)
      return found->second.devices;
  }
  const auto object = read_(claim.resource(), key.second, std::move(stop));
  const bool is_absent =
      !object.ok() && (object.error().code() == ErrorCode::kNotFound || !may_pass_by_itself(object.error()));
  if (!object.ok() && !is_absent) return std::nullopt;
  const Known known = object.ok() ? Known{api::claimed_devices(*object), clock_.now() + kClaimBelievedFor}
                                  : Known{kOneDevice, clock_.now() + kAbsenceBelievedFor};
  std::lock_guard lock(mutex_);
  if (known_.size() >= kMostKnownClaims) known_.clear();
  known_[key] = known;
  return known.devices;
}

}  // namespace sluice::act
