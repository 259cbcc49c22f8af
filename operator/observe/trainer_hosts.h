// The nodes on which a job's trainer pods run, and the feeders there.
//
// Thread safety: values and pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/api/feeder_view.h"
#include "operator/observe/pod_view.h"
#include "scheduler/model/snapshot.h"

namespace sluice::observe {

// A trainer pod that is bound to a node and carries a feeder.
struct FeederPod {
  kube::ObjectKey key;
  std::string uid;
  std::string job_uid;  // of the TrainingJob
  std::string node;
  api::FeederView feeder;
};

// In the order of the pods' keys.
using FeederPods = std::map<scheduler::JobId, std::vector<FeederPod>>;

// The trainer pods of one job that have not finished.
using TrainerPods = std::vector<const PodViews::Entries::value_type*>;

// The feeders of those that are bound.
std::vector<FeederPod> feeders_of(const TrainerPods& pods, const std::string& job_uid);

// One entry per node, in the order of their names, with the CPU that is in force. `ranks` and `gpus`: of one pod.
std::vector<scheduler::TrainerHost> hosts_of(const TrainerPods& pods, int ranks, int gpus);

// Whether the CPU of all these feeders can be changed in place. `fixed`: uids of pods where that failed lately. A
// best-effort pod would change its QoS class, which a resize must not.
bool can_resize(const std::vector<FeederPod>& feeders, const std::set<std::string>& fixed);

}  // namespace sluice::observe
