// The end of a feeder's or worker's certificate, as a metric. It shows an operator that renews none, or a pod that does
// not get the new files, weeks before connections are refused.
#pragma once

#include <chrono>

#include "src/base/clock.h"
#include "src/executor/executor_metrics.h"
#include "src/transport/credentials.h"

namespace prometheus {
class Gauge;
class Registry;
}  // namespace prometheus

namespace sluice::program {

// Thread safety: none. The registry itself may be scraped at any time.
class CertificateEnd {
 public:
  // No series in the clear. REQUIRES: registry and clock outlive this.
  CertificateEnd(prometheus::Registry& registry, const executor::JobLabels& labels, transport::Credentials credentials,
                 const Clock& clock);

  // Looks at the files, once a minute at most. To be called every second.
  void tick();

 private:
  const transport::Credentials credentials_;
  const Clock& clock_;
  prometheus::Gauge* end_ = nullptr;  // null: in the clear
  Clock::TimePoint next_look_;
};

}  // namespace sluice::program
