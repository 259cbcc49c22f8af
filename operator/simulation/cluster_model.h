// The rest of a Kubernetes cluster in a simulation: scheduler, kubelets, Job controller, garbage collector. What each
// does takes a little while, drawn from the seed.
//
// Simplified: pods never fail by themselves; a Job's controller creates, deletes and counts its pods and ends the Job;
// endpoints are the ready pods themselves. Thread safety: none.
#pragma once

#include <map>
#include <set>
#include <string>

#include "operator/simulation/random.h"
#include "operator/simulation/virtual_clock.h"
#include "operator/simulation/workload.h"
#include "src/kube/fake/api_server.h"

namespace sluice::simulation {

class ClusterModel {
 public:
  // REQUIRES: all references outlive the model.
  ClusterModel(kube::fake::ApiServer& server, const VirtualClock& clock, Random& random, const Workload& workload);

  // To be called with every change of the server, in order.
  void on_change(const kube::fake::StoredChange& change);

  // Something is due.
  bool has_work() const;
  // REQUIRES: has_work(). Does one thing; returns what, for the trace.
  std::string step();
  Clock::TimePoint next_due() const;
  // A training goes on that will end by itself.
  bool is_training() const;

 private:
  enum class Task { kBind, kStart, kFinish, kRemove, kSyncJob, kCollect };
  struct Due {
    Task task;
    kube::ObjectKey key;
    std::string uid;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  void schedule(Task task, const kube::ObjectKey& key, const std::string& uid, double least_seconds,
                double most_seconds);
  void on_pod(const kube::fake::StoredChange& change);
  void bind(const Due& due);
  void start(const Due& due);
  void finish(const Due& due);
  void sync_job(const kube::ObjectKey& key);
  void create_trainer(const kube::Json& job, int index);

  kube::fake::ApiServer& server_;
  const VirtualClock& clock_;
  Random& random_;
  const Workload& workload_;
  std::multimap<Clock::TimePoint, Due> agenda_;
  std::set<Due> planned_;
  int trainers_created_ = 0;
};

// Millicores that the pod's containers ask for.
std::int64_t requested_millicores(const kube::Json& pod);

}  // namespace sluice::simulation
