#include "operator/act/refused_children.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/act/cluster_seams.h"
#include "operator/api/object.h"

namespace sluice::act {

namespace {

constexpr std::size_t kMaxRefusals = 20000;
constexpr auto kLongestPause = std::chrono::milliseconds(std::chrono::minutes(1));
constexpr auto kFirstPauseOfTakenName = std::chrono::milliseconds(std::chrono::seconds(1));
constexpr int kMostDoublings = 6;

// What the writes follow from. The status of pool and TrainingJob, which changes often, is no part of it.
std::string seen_in(const TrainingJobWorld& world) {
  const api::Object training_job(*world.training_job);
  std::string seen = training_job.uid() + ' ' + std::to_string(training_job.generation());
  for (const kube::ObjectPointer& child : {world.service, world.trainers_service, world.pool, world.network_policy})
    seen += ' ' + (child ? api::Object(*child).uid() : "-");
  seen += ' ' + (world.job ? api::Object(*world.job).resource_version() : "-");
  for (const kube::ObjectPointer& range : world.limit_ranges) seen += ' ' + api::Object(*range).resource_version();
  return seen;
}

}  // namespace

std::optional<Error> RefusedChildren::standing(const kube::ObjectKey& key, const TrainingJobWorld& world) const {
  std::lock_guard lock(mutex_);
  const auto found = refusals_.find(key);
  if (found == refusals_.end() || found->second.until <= clock_.now()) return std::nullopt;
  if (found->second.seen != seen_in(world)) return std::nullopt;
  return found->second.error;
}

std::optional<std::chrono::milliseconds> RefusedChildren::pause(const kube::ObjectKey& key) const {
  std::lock_guard lock(mutex_);
  const auto found = refusals_.find(key);
  if (found == refusals_.end()) return std::nullopt;
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(found->second.until - clock_.now()),
                  std::chrono::milliseconds(0));
}

void RefusedChildren::note(const kube::ObjectKey& key, const TrainingJobWorld& world, const Result<void>& outcome) {
  std::lock_guard lock(mutex_);
  const bool name_is_taken = !outcome.ok() && outcome.error().code() == ErrorCode::kAlreadyExists;
  if (outcome.ok() || (may_pass_by_itself(outcome.error()) && !name_is_taken)) {
    refusals_.erase(key);
    return;
  }
  if (refusals_.size() >= kMaxRefusals) refusals_.clear();
  std::string seen = seen_in(world);
  const auto before = refusals_.find(key);
  const bool again = before != refusals_.end() && before->second.seen == seen;
  const int in_a_row = again ? std::min(before->second.in_a_row + 1, kMostDoublings) : 0;
  const auto pause = name_is_taken ? std::min(kFirstPauseOfTakenName * (1 << in_a_row), kLongestPause) : kLongestPause;
  refusals_.insert_or_assign(key, Refusal{std::move(seen), outcome.error(), in_a_row, clock_.now() + pause});
}

void RefusedChildren::forget(const kube::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  refusals_.erase(key);
}

}  // namespace sluice::act
