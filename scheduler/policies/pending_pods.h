// Workers that were asked for and found no room, in the order in which they were asked for.
//
// Source: Kubernetes, kube-scheduler: among pods of one priority the one that was queued first is tried first; a
// ReplicaSet that scales in deletes pods without a node first, the youngest before older ones.
//
// Thread safety: none.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "scheduler/snapshot.h"

namespace sluice::scheduler {

class PendingPods {
 public:
  struct Batch {
    double asked_at_seconds = 0;
    int count = 0;
  };

  // `missing` pods of the job are not placed now. More than before: the others have just been asked for. Fewer: the
  // youngest are not wanted any more.
  void set_missing(const JobId& job, int missing, double now_seconds);

  // The oldest of the job's pending pods has found a node.  REQUIRES: there is one
  void placed(const JobId& job);

  // Forgets all other jobs.
  void keep_only(const std::set<JobId>& jobs);

  // Oldest first.
  const std::deque<Batch>& of(const JobId& job) const;

 private:
  std::map<JobId, std::deque<Batch>> batches_;  // none is empty
};

}  // namespace sluice::scheduler
