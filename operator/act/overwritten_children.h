// Children that another writer keeps changing back: a second operator over the same namespace, or a tool that applies a
// copy of its own. If each of its writes were answered at once, both would write as fast as the API server lets them.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "src/base/clock.h"
#include "src/kube/action.h"

namespace sluice::act {

// Thread safety: all methods may be called from any thread.
class OverwrittenChildren {
 public:
  // From then on people are told: a child that is restored for the fourth time is no accident.
  static constexpr std::chrono::seconds kTold{8};

  explicit OverwrittenChildren(const Clock& clock) : clock_(clock) {}

  // How long this apply has to wait because the same one was done a moment ago. Zero: it may be done. The wait begins
  // with a second, doubles with each apply of the same body up to five minutes, and is forgotten after ten quiet ones.
  Clock::Duration wait(const kube::Action& action) const;

  // The apply was done. Returns how long the next one of the same body will wait.
  Clock::Duration note(const kube::Action& action);

 private:
  struct Applied {
    std::string body;  // its fingerprint
    Clock::TimePoint at;
    Clock::Duration pause;
  };
  // The kind, the field manager (the pool has two) and the name.
  using Child = std::tuple<std::string, std::string, kube::ObjectKey>;
  static Child child_of(const kube::Action& action);

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<Child, Applied> applied_;
};

}  // namespace sluice::act
