// The part of ClusterRun in which the operator is upgraded and rolled back, as its Deployment does it. A process of the
// new version starts beside the others, and then one of the old version is told to end.
#include <algorithm>

#include "operator/fault_simulation/cluster_run.h"

namespace sluice::simulation {

using std::chrono::seconds;

namespace {

constexpr int kLeastSecondsBeside = 2;  // that a new process runs beside the old ones
constexpr int kMostSecondsBeside = 20;

}  // namespace

// An upgrade that is under way is not turned round by the next one.
void ClusterRun::change_version() {
  if (rollout_due_ != Clock::TimePoint::max()) return;
  const bool back = wanted_version_ == OperatorVersion::kOther;
  roll_out(back ? OperatorVersion::kThis : OperatorVersion::kOther);
}

void ClusterRun::roll_out(OperatorVersion version) {
  wanted_version_ = version;
  rollout_due_ = clock_.now();
  say(version == OperatorVersion::kThis ? "the operator is rolled back" : "the operator is upgraded");
}

// Once a second.
void ClusterRun::continue_rollout() {
  if (clock_.now() < rollout_due_) return;
  const auto is_outdated = [&](const Machine& machine) {
    return !machine.is_spare() && machine.version != wanted_version_;
  };
  const auto outdated = std::find_if(machines_.begin(), machines_.end(), is_outdated);
  if (outdated == machines_.end()) {
    rollout_due_ = Clock::TimePoint::max();
    return;
  }
  const auto spare =
      std::find_if(machines_.begin(), machines_.end(), [](const Machine& machine) { return machine.is_spare(); });
  if (spare != machines_.end()) {
    spare->version = wanted_version_;
    spare->starts_at = clock_.now();
  } else {
    say(outdated->name + ": is told to end");
    if (outdated->process) outdated->process->stop();
    outdated->process.reset();
    outdated->starts_at = Clock::TimePoint::max();
  }
  const auto beside = random_.below(static_cast<std::uint64_t>(kMostSecondsBeside - kLeastSecondsBeside));
  rollout_due_ = clock_.now() + seconds(kLeastSecondsBeside + static_cast<int>(beside));
}

}  // namespace sluice::simulation
