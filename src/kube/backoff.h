// Growing, jittered pauses between tries. Those of client-go's reflector double from 800 ms to 30 s, and jitter makes
// them up to twice as long. After two minutes without a failure they begin anew.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "src/base/clock.h"

namespace sluice::kube {

// Uniform in [0, 1). Injected, so that a simulation decides.
using UniformRandom = std::function<double()>;

// A thread-safe generator seeded by the system; what main() passes.
UniformRandom system_random();

struct BackoffOptions {
  std::chrono::milliseconds first{800};
  std::chrono::milliseconds cap{30000};
  double factor = 2.0;
  double jitter = 1.0;  // a pause d becomes uniform in [d, d * (1 + jitter))
  std::chrono::milliseconds reset_after = std::chrono::minutes(2);
};

// Thread safety: none.
class Backoff {
 public:
  // REQUIRES: `clock` outlives the backoff.
  Backoff(BackoffOptions options, const Clock& clock, UniformRandom random);

  // The pause before the next try. Starts over when more than reset_after has passed since the last call.
  std::chrono::milliseconds next();

  void reset() { last_.reset(); }

 private:
  BackoffOptions options_;
  const Clock& clock_;
  UniformRandom random_;
  std::chrono::milliseconds pause_{0};
  std::optional<Clock::TimePoint> last_;
};

}  // namespace sluice::kube
