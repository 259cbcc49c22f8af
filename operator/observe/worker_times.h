// When workers were made and became ready, by our own clock.
//
// API server and kubelets write these times by their clocks, and decisions compare them with ours. Where ours is ten
// minutes behind, a worker would count as ready only ten minutes later. Where it is ahead, it would count as ready in a
// window that was measured before it was there. What is seen to happen between two rounds happened between them: a time
// that says otherwise is moved there. Clocks that agree change nothing.
//
// Thread safety: none; one owner.
#pragma once

#include <optional>

#include "operator/observe/pod_view.h"

namespace sluice::observe {

class WorkerTimes {
 public:
  // To be called first in each round.
  void begin_round(double now_seconds);

  // Moves the times of a view of this round. `before`: the view of the same name before; null: there was none.
  void settle(PodView& view, const PodView* before) const;

  // True in a round whose clock was set back: then the times of all views need clip().
  bool was_set_back() const { return was_set_back_; }
  // No time of it is in the future.
  void clip(PodView& view) const;

 private:
  double moved(double said_seconds) const;

  bool begun_ = false;
  double now_seconds_ = 0;
  std::optional<double> before_seconds_;  // the last round; none: what is seen now may be as old as it says
  bool was_set_back_ = false;
};

}  // namespace sluice::observe
