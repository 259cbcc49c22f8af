// Whether one asks a server that has failed: not for a second, and then for twice as long each time, up to kBackOffMax.
//
// One thread tries then; the others go on without it until that one is answered.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <mutex>

#include "src/base/clock.h"

namespace sluice::cache {

class Breaker {
 public:
  static constexpr std::chrono::seconds kBackOffMin{1};
  static constexpr std::chrono::seconds kBackOffMax{30};

  // REQUIRES: the clock outlives it.
  explicit Breaker(const Clock& clock) : clock_(clock), next_try_(clock.now()) {}

  enum class Leave { kNone, kGiven, kToTry };  // kToTry: as the only one, after a failure
  // What is given is to be followed by answered() or failed().
  Leave leave();
  // Whether the answer is the first one after a failure.
  bool answered();
  // Whether the failure is the first one after an answer. Of the threads that asked at the same time, one tells.
  bool failed(Leave leave);

  // Since the last failure there was no answer.
  bool is_open();

 private:
  const Clock& clock_;
  std::mutex mutex_;
  Clock::Duration back_off_{0};  // 0: the last question was answered
  Clock::TimePoint next_try_;
  bool is_trying_ = false;
};

}  // namespace sluice::cache
