#include "operator/act/controller.h"

#include <algorithm>

#include "src/base/guarded.h"
#include "src/base/logging.h"

namespace sluice::act {

namespace {

constexpr auto kAfterLostRace = std::chrono::seconds(1);  // should the change be one that no handler is told of

}  // namespace

Controller::Controller(std::string name, Reconcile reconcile, std::function<void()> failed, const Clock& clock)
    : name_(std::move(name)),
      reconcile_(std::move(reconcile)),
      failed_(std::move(failed)),
      clock_(clock),
      queue_(clock, {.max_retry = std::chrono::minutes(1)}) {}

void Controller::start(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this](std::stop_token stop) { work(stop); });
}

void Controller::stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
}

Clock::Duration Controller::longest_running() const {
  std::lock_guard lock(mutex_);
  Clock::Duration longest{};
  for (const auto& [key, since] : running_since_) longest = std::max(longest, clock_.now() - since);
  return longest;
}

void Controller::work(std::stop_token stop) {
  while (const auto key = queue_.get(stop)) {
    reconcile_one(*key, stop);
    queue_.done(*key);
  }
}

bool Controller::step(std::stop_token stop) {
  const auto key = queue_.try_get();
  if (!key) return false;
  reconcile_one(*key, std::move(stop));
  queue_.done(*key);
  return true;
}

void Controller::reconcile_one(const kube::ObjectKey& key, std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    running_since_[key] = clock_.now();
  }
  const auto again = guarded(ErrorCode::kInternal, key.to_string(), [&] { return reconcile_(key, stop); });
  {
    std::lock_guard lock(mutex_);
    running_since_.erase(key);
  }
  if (again.ok()) {
    queue_.forget(key);
    if (*again) queue_.add_after(key, **again, kube::Priority::kLow);
    return;
  }
  if (stop.stop_requested()) return;
  // A lost race is the normal way to learn that the cache is behind. The change that it does not show yet adds the key
  // again; to ask before that is to be refused again.
  if (again.error().code() == ErrorCode::kConflict) {
    log(LogLevel::kDebug, name_, "decided on what has changed since",
        {{"object", key.to_string()}, {"error", again.error().to_string()}});
    queue_.add_after(key, kAfterLostRace);
    return;
  }
  failed_();
  log_warning(name_, "reconcile failed", {{"object", key.to_string()}, {"error", again.error().to_string()}});
  queue_.add_rate_limited(key);
}

}  // namespace sluice::act
