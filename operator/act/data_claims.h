// What is to be known of the PersistentVolumeClaims of a job: whether workers on other nodes can read them, and who
// they are.
//
// Claims are read by name when a job needs the answer, never listed or watched, and are believed for a while. Thread
// safety: all methods may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "operator/api/mounted_volumes.h"
#include "operator/api/training_job.h"
#include "src/base/clock.h"
#include "src/kube/resource.h"

namespace sluice::act {

class DataClaims {
 public:
  using Read = std::function<Result<kube::Json>(const kube::Resource&, const kube::ObjectKey&, std::stop_token)>;

  // REQUIRES: the clock outlives this object.
  DataClaims(Read read, const Clock& clock);

  // Why they cannot, with the way out. Empty: they can, or the job wants no workers, or a claim is not there yet. The
  // trainer waits for that claim, too. A claim that may not be read counts as one that they cannot read.
  // Errors: those of reading that may pass by themselves, while nothing is known of a claim.
  Result<std::string> unshared_data(const api::TrainingJob& training_job, std::stop_token stop);

  // The uids of the claims that its trainer and its workers mount, by name. Those that are not there, or may not be
  // read, are left out; of a job that is over all are. Errors: as above.
  Result<api::ClaimUids> uids(const api::TrainingJob& training_job, std::stop_token stop);

 private:
  struct Known {
    bool serves_several_nodes = false;
    std::string uid;
    Clock::TimePoint read_at;
  };
  // Errors: NotFound for one that is not there; those of reading while nothing is known of it.
  Result<Known> look_up(const kube::ObjectKey& claim, std::stop_token stop);
  // Why workers on other nodes cannot mount it; empty: as above.
  Result<std::string> hindrance(const kube::ObjectKey& claim, std::stop_token stop);

  const Read read_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<kube::ObjectKey, Known> known_;
};

}  // namespace sluice::act
