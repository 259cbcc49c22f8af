// Carries out JobPlan::local: the feeders' CPU, changed in place.
//
// Level-driven: the wanted and the present CPU of a pod are both in the pod, so a lost write is simply made again.
// Only resizes that must not be tried again at once are remembered. That memory may be lost, and is then learnt anew.
//
// A resize fails when the API server refuses it, when the kubelet calls it infeasible, or when it has not happened
// after a minute. Then the pod is asked to stay as it is. The plan takes its CPU for fixed (SnapshotBuilder) and counts
// on data workers. The next try waits one minute, doubled with each failure, at most five.
//
// Thread safety: none; one owner.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/observe/trainer_hosts.h"
#include "scheduler/model/plan.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"

namespace sluice::decide {

struct FeederOrder {
  kube::Action action;  // server-side apply of the feeder's CPU request and limit
  kube::Event event;    // about the TrainingJob, for after it has succeeded
  scheduler::JobId job;
  std::string pod_uid;
  api::FeederCpu from;
  api::FeederCpu to;

  bool frees_room() const { return to.request_millicores < from.request_millicores; }
};

// Trainer pods have equal parts of their job's CPU on a node. A change within a tenth is left for later, because every
// resize is a write. A feeder that grew half a minute ago does not grow again yet. Nothing delays giving CPU back.
class FeederResizing {
 public:
  // Uids of the pods whose feeder is to be left as it is for now.
  std::set<std::string> fixed(double now_seconds) const;

  // The writes to make now, those that free room first. `feeders`: those that the plan was made for.
  // `now_seconds`: of a clock that only goes forward.
  std::vector<FeederOrder> orders(const observe::FeederPods& feeders, const scheduler::Plan& plan, double now_seconds);

  // The order's write went wrong. True if the server refuses it: then a later one passes only after a change of our
  // rights or of a LimitRange. Another error may pass by itself, or the pod is another one by now.
  bool refused(const FeederOrder& order, const Error& error, double now_seconds);

  // Why feeders of the job stay as they are, in a sentence; empty: they need not.
  std::string problem_of(const scheduler::JobId& job, double now_seconds) const;

  // Of the last orders(): jobs that a resize has failed for, with none that succeeded since. Their data workers stay
  // until one does.
  const std::set<scheduler::JobId>& doubtful() const { return doubtful_; }

 private:
  struct Attempts {
    scheduler::JobId job;
    double asked_at_seconds = 0;  // meaningful only if `asked`
    bool asked = false;           // for `asked_for`, and it is not known to have happened
    api::FeederCpu asked_for;
    double grew_at_seconds = 0;  // meaningful only if `grew`
    bool grew = false;
    int failures = 0;  // in a row
    double fixed_until_seconds = 0;
    std::string problem;  // of the last failure
    double seen_at_seconds = 0;
  };

  std::optional<FeederOrder> order_of(const scheduler::JobId& job, const observe::FeederPod& pod,
                                      const api::FeederCpu& planned, const std::string& why, double now_seconds);
  FeederOrder take_back(const scheduler::JobId& job, const observe::FeederPod& pod, Attempts& attempts,
                        double now_seconds);
  void fail(Attempts& attempts, std::string problem, double now_seconds);
  void forget_unseen(double now_seconds);

  std::map<std::string, Attempts> attempts_;  // by the pod's uid
  std::set<scheduler::JobId> doubtful_;
};

}  // namespace sluice::decide
