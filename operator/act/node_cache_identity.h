// The certificate of the caches of nodes: one Secret in the operator's own namespace, which their pods mount.
//
// It is made, and made anew, as those of the jobs are (certificates.h, certificate_rotation.h). A pod
// that trusts what authorities() said in the last hours trusts the daemons. Thread safety: all methods may be called
// from any thread.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/act/cluster_seams.h"
#include "operator/config.h"
#include "src/base/clock.h"

namespace sluice::act {

class NodeCacheIdentity {
 public:
  // REQUIRES: config and clock outlive this object.
  NodeCacheIdentity(ClusterSeams seams, const control::Config& config, const Clock& clock);

  // The authorities, PEM, that a daemon's certificate is checked by. Empty: there is no cache, or the Secret can be
  // neither read nor written, which is logged once; jobs go on without. Makes the Secret, or changes it, where that is
  // due; what was read is believed for a while.
  std::string authorities(std::stop_token stop);

 private:
  Result<void> look(std::stop_token stop);

  const ClusterSeams seams_;
  const control::Config& config_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string authorities_;
  std::optional<Clock::TimePoint> next_try_;
  std::chrono::system_clock::time_point rotates_at_;
  std::string problem_;  // as it was logged last
};

}  // namespace sluice::act
