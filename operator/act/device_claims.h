// How many accelerators a trainer's pod gets by claims of dynamic resource allocation. The pod names the claims alone.
//
// Claims are read by name when a job needs the answer, never listed or watched, and are believed for a while. Thread
// safety: all methods may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "operator/api/device_claim.h"
#include "operator/api/training_job.h"
#include "src/base/clock.h"

namespace sluice::act {

class DeviceClaims {
 public:
  using Read = std::function<Result<kube::Json>(const kube::Resource&, const kube::ObjectKey&, std::stop_token)>;

  // REQUIRES: the clock outlives this object.
  DeviceClaims(Read read, const Clock& clock);

  // Of one pod. Where no device class tells of accelerators, all devices count. A claim that is not there, or may not
  // be read, counts as one. None: the pod has no such claims, the job is over, or a claim cannot be read for the
  // moment.
  std::optional<std::int64_t> accelerators(const api::TrainingJob& training_job, std::stop_token stop);

 private:
  using Key = std::pair<bool, kube::ObjectKey>;  // whether it is a template
  struct Known {
    api::ClaimedDevices devices;
    Clock::TimePoint until;
  };
  std::optional<api::ClaimedDevices> look_up(const std::string& name_space, const api::DeviceClaim& claim,
                                             std::stop_token stop);

  const Read read_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<Key, Known> known_;
};

}  // namespace sluice::act
