#include "scheduler/simulator/policies/pecan_tuner.h"

#include <algorithm>
#include <cmath>

namespace sluice::scheduler {

const PecanReport* PecanTuner::last_other() const {
  const PecanReport& now = history_.back();
  const auto other = std::find_if(history_.rbegin(), history_.rend(), [&](const PecanReport& past) {
    return past.remote != now.remote || past.local != now.local;
  });
  return other == history_.rend() ? nullptr : &*other;
}

PecanTarget PecanTuner::report(const PecanReport& now) {
  history_.push_back(now);
  if (history_.size() > constants_.history_reports) history_.pop_front();
  if (state_ == State::kStable) return target_;

  // 1. Is the last request in effect?
  if (now.remote != target_.remote || now.local != target_.local) {
    if (now.remote != target_.remote && now.remote_available) return target_;
    state_ = State::kIncreasingLocal;
  }

  // 2. The gain of the last change.
  if (history_.size() == 1) return target_ = {now.remote + 1, now.local};
  const PecanReport* before = last_other();
  if (before == nullptr) {
    state_ = State::kStable;
    return target_ = {now.remote, now.local};
  }
  const double improvement = 1 - now.batch_seconds / before->batch_seconds;
  if (std::abs(improvement) > constants_.discard_above) return target_;

  // 3. The next one.
  switch (state_) {
    case State::kOnlyRemote: return target_ = add_remote(now, *before, improvement);
    case State::kIncreasingLocal: return target_ = add_local(now, improvement);
    case State::kDecreasingRemote: return target_ = remove_remote(now, improvement);
    case State::kStable: break;
  }
  return target_;
}

PecanTarget PecanTuner::add_remote(const PecanReport& now, const PecanReport& before, double improvement) {
  if (improvement > constants_.scale_up_above && now.remote < constants_.max_remote && now.remote_available) {
    return {now.remote + 1, now.local};
  }
  state_ = State::kIncreasingLocal;
  count_at_entry_ = 0;
  const bool at_the_limit = now.remote == constants_.max_remote;
  return {at_the_limit ? now.remote : before.remote, std::min(constants_.max_local, before.local + 1)};
}

PecanTarget PecanTuner::add_local(const PecanReport& now, double improvement) {
  const bool harmful = improvement < -constants_.local_harm;
  if (!harmful && now.local < constants_.max_local) return {now.remote, now.local + 1};
  const int local = harmful ? std::max(0, now.local - 1) : now.local;
  if (local == count_at_entry_ || now.remote == 0) {
    state_ = State::kStable;
    return {now.remote, local};
  }
  state_ = State::kDecreasingRemote;
  count_at_entry_ = now.remote;
  return {now.remote - 1, local};
}

PecanTarget PecanTuner::remove_remote(const PecanReport& now, double improvement) {
  const double hourly = constants_.client_cost_per_hour + now.remote * constants_.worker_cost_per_hour;
  const bool cheaper = constants_.worker_cost_per_hour > -improvement * hourly;
  if (cheaper && now.remote > 0) return {now.remote - 1, now.local};
  const int remote = cheaper ? now.remote : now.remote + 1;
  if (remote == count_at_entry_ || now.local >= constants_.max_local) {
    state_ = State::kStable;
    return {remote, now.local};
  }
  state_ = State::kIncreasingLocal;
  count_at_entry_ = now.local;
  return {remote, now.local + 1};
}

}  // namespace sluice::scheduler
