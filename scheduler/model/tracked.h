// A quantity that is measured again and again under noise, and the value that the plan builds on meanwhile.
//
// Two geometric averages of the same values; noise multiplies, so it is as often twice as half:
//   recent  forgets: a new value weighs `smoothing`, the first ones 1/n. It notices that the truth has changed.
//   mean    weighs all values since the last change alike. Its error shrinks with the root of their number.
// The published value moves only for a reason, because every move costs workers that stop and start:
//   changed   the recent average is off by more than `publish_threshold`, and by more than the series' own noise
//             explains: another truth. The mean starts again there.
//   refined   there are 2, 4, 8, ... values since the last change: the mean has become much more exact than the
//   published value, which is a single noisy one at first. So a steady job is moved a few times in all its life.
//
// Thread safety: plain value. REQUIRES: every value > 0.
#pragma once

#include "scheduler/model/config.h"

namespace sluice::scheduler {

struct Tracked {
  enum class Step { kKept, kRefined, kChanged };

  double recent = 0;
  double mean = 0;
  double published = 0;
  int count = 0;         // of values in `mean`
  double noise = 0;      // standard deviation of one value's logarithm, as far as it has been seen
  int noise_values = 1;  // that `noise` was learnt from; stops at 40, so that it forgets

  static Tracked starting_at(double value) { return {value, value, value, 1}; }

  // One more value.
  Step take(double value, const Config& config);

  // Another unit of measurement.
  void rescale(double factor);

  friend bool operator==(const Tracked&, const Tracked&) = default;
};

}  // namespace sluice::scheduler
