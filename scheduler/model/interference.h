// Whether a job's feeders slow down its own trainer, as far as the measurements tell: the guard of local CPU.
//
// A trainer computes for a batch as long as ever, however it is fed. Its seconds of computing per batch may rise while
// its feeders use more CPU than before. Then the feeders take something that no CPU request protects: memory bandwidth,
// caches, or CPU that the trainer never requested. For a while they go back to the CPU that they used before.
//
// Only windows that hardly overlap count. Metrics of half a minute, read every five seconds, show the same seconds six
// times. Their scatter then looks small, and a slow moment of the machine looks like proof.
//
// Pecan (USENIX ATC 2024, AutoPlacement) removes the last local worker again when that made batches slower by more than
// 10 %, from one comparison. Here it is 5 % of the computing time, from several windows, and beyond their noise.
//
// Thread safety: plain values.
#pragma once

#include <optional>

#include "scheduler/model/config.h"

namespace sluice::scheduler {

inline constexpr int kSettledWindows = 20;  // after which a growth of feeders is the new reference

// Mean and scatter of values that are seen one after another.
struct RunningMean {
  int count = 0;
  double mean = 0;
  double squares = 0;  // of the deviations, summed up

  void take(double value);

  friend bool operator==(const RunningMean&, const RunningMean&) = default;
};

// Whether a window shows at most a tenth of what windows up to `through_seconds` have shown.
bool is_apart(double window_end_seconds, double window_seconds, double through_seconds);

// Whether feeders use so much more CPU that they have grown.
bool has_grown(double from_cores, double to_cores);

// Whether seconds of computing per batch rose: by more than Config::interference_above, and by more than so many
// standard errors. REQUIRES: three values in all
bool has_risen(const RunningMean& from, const RunningMean& to, double standard_errors, const Config& config);

struct Interference {
  double through_seconds = 0;  // end of the newest window that counted
  double reference_cores = 0;  // of the feeders, at work, in the windows of `reference`
  RunningMean reference;       // seconds of computing per batch
  RunningMean grown;           // the same while the feeders used more
  std::optional<double> cap_cores;
  double capped_at_seconds = 0;  // meaningful only with `cap_cores`

  // One more window. REQUIRES: compute_seconds > 0
  void take(double feeder_cores, double compute_seconds, double window_end_seconds, double window_seconds,
            const Config& config);

  void begin_anew();

  friend bool operator==(const Interference&, const Interference&) = default;
};

}  // namespace sluice::scheduler
