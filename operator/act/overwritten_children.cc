#include "operator/act/overwritten_children.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/fingerprint.h"

namespace sluice::act {

namespace {

constexpr std::size_t kMostChildren = 50'000;
constexpr auto kFirstPauseOfOverwritten = std::chrono::seconds(1);
constexpr auto kLongestPauseOfOverwritten = std::chrono::minutes(5);
constexpr auto kQuiet = std::chrono::minutes(10);

}  // namespace

OverwrittenChildren::Child OverwrittenChildren::child_of(const kube::Action& action) {
  return {std::string(action.resource.kind), action.field_manager, action.key};
}

Clock::Duration OverwrittenChildren::wait(const kube::Action& action) const {
  std::lock_guard lock(mutex_);
  const auto found = applied_.find(child_of(action));
  if (found == applied_.end() || found->second.body != api::fingerprint(action.body)) return Clock::Duration(0);
  return std::max(found->second.at + found->second.pause - clock_.now(), Clock::Duration(0));
}

Clock::Duration OverwrittenChildren::note(const kube::Action& action) {
  std::lock_guard lock(mutex_);
  if (applied_.size() >= kMostChildren) applied_.clear();
  std::string body = api::fingerprint(action.body);
  const auto [entry, is_new] = applied_.try_emplace(child_of(action));
  Applied& applied = entry->second;
  const Clock::TimePoint now = clock_.now();
  const bool is_again = !is_new && applied.body == body && now - applied.at - applied.pause < kQuiet;
  const Clock::Duration doubled = std::min<Clock::Duration>(2 * applied.pause, kLongestPauseOfOverwritten);
  applied = {std::move(body), now, is_again ? doubled : kFirstPauseOfOverwritten};
  return applied.pause;
}

}  // namespace sluice::act
