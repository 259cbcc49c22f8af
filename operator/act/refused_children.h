// Refusals of the writes that bring a job's children. Each decision round looks at each job: without a pause, a spec
// that cannot be carried out would cost a write and a line of the log in each round, for ever.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/act/training_job.h"
#include "src/base/clock.h"
#include "src/base/result.h"

namespace sluice::act {

// Thread safety: all methods may be called from any thread.
class RefusedChildren {
 public:
  explicit RefusedChildren(const Clock& clock) : clock_(clock) {}

  // The refusal of the last try, while its pause lasts. None: the children are to be written. A change of the spec, of
  // a child or of a LimitRange ends the pause.
  std::optional<Error> standing(const kube::ObjectKey& key, const TrainingJobWorld& world) const;

  // How long the refusal still stands; none: there is none.
  std::optional<std::chrono::milliseconds> pause(const kube::ObjectKey& key) const;

  // The outcome of a try. What a person must correct pauses for a minute. A name that another owner's object has may be
  // free in a moment, as where a job is deleted and made again: its pause begins with a second and doubles.
  void note(const kube::ObjectKey& key, const TrainingJobWorld& world, const Result<void>& outcome);

  void forget(const kube::ObjectKey& key);

 private:
  struct Refusal {
    std::string seen;  // what was tried upon
    Error error;
    int in_a_row = 0;
    Clock::TimePoint until;
  };

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<kube::ObjectKey, Refusal> refusals_;  // by the TrainingJob
};

}  // namespace sluice::act
