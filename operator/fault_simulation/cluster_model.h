// The rest of a Kubernetes cluster in a simulation: scheduler, kubelets, Job controller, garbage collector. Each action
// takes a little while, drawn from the seed.
//
// Simplified: pods never fail by themselves; a Job's controller creates, deletes and counts its pods and ends the Job;
// endpoints are the ready pods themselves; no disruption budget holds up an eviction. Thread safety: none.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"
#include "operator/fault_simulation/random.h"
#include "operator/fault_simulation/virtual_clock.h"
#include "operator/fault_simulation/workload.h"
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
  // Kubelets do not resize any pod while they are.
  void set_kubelets_deaf(bool deaf) { kubelets_are_deaf_ = deaf; }
  // Nodes of the workload, by name. Each answers as the API server does.
  kube::fake::Reply add_node(const std::string& name);
  kube::fake::Reply drain(const std::string& name);
  kube::fake::Reply uncordon(const std::string& name);
  kube::fake::Reply remove_node(const std::string& name);
  // By how much the kubelets' clocks are ahead of the API server's.
  void set_node_skew(std::chrono::seconds skew) { node_skew_ = skew; }

 private:
  enum class Task { kBind, kStart, kResize, kFinish, kEvict, kRemove, kSyncJob, kCollect };
  struct Due {
    Task task;
    kube::ObjectKey key;
    std::string uid;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  void schedule(Task task, const kube::ObjectKey& key, const std::string& uid, double least_seconds,
                double most_seconds);
  void on_pod(const kube::fake::StoredChange& change);
  void for_pods_on(const std::string& node,
                   const std::function<void(const kube::ObjectKey&, const api::Pod&)>& act) const;
  void bind(const Due& due);
  void start(const Due& due);
  bool runs_out_of_memory(const kube::Json& object) const;
  void finish(const Due& due);
  void resize(const Due& due);
  void report_feeder(kube::Json& pod) const;
  // The pod of the task, unless it is gone, another one, or over, or its node is gone.
  kube::ObjectPointer serving(const Due& due) const;
  void modify_status(const Due& due, const std::function<void(kube::Json&, const std::string& now)>& modify);
  std::int64_t free_millicores(const std::string& node, const kube::ObjectKey& but);
  void sync_job(const kube::ObjectKey& key);
  void fail_job(const api::TrainerJob& job);
  void create_trainer(const api::TrainerJob& job, int index);

  kube::fake::ApiServer& server_;
  const VirtualClock& clock_;
  Random& random_;
  const Workload& workload_;
  std::multimap<Clock::TimePoint, Due> agenda_;
  std::set<Due> planned_;
  std::set<std::string> jobs_with_lost_pods_;  // by uid: trainers that were deleted before they had succeeded
  int trainers_created_ = 0;
  bool kubelets_are_deaf_ = false;
  std::chrono::seconds node_skew_{0};
};

// CPU that kube-scheduler keeps for the pod: a resize that may still happen counts.
std::int64_t reserved_millicores(const kube::Json& pod);

}  // namespace sluice::simulation
