// Data that the trainer's pod can read and a worker's pod cannot.
//
// A volume that spec.dataWorkers.template names is not counted: its user has said what the workers have in its place.
// Thread safety: pure functions.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/api/training_job.h"

namespace sluice::api {

// A volume of the training container that begins empty in every pod (emptyDir, ephemeral) and that an init container of
// the user's fills. Workers have neither its files nor that init container, so no worker can read what the trainer
// reads. An init container of spec.dataWorkers.template that mounts it fills it for the workers.
// The same holds for a variable that such an init container writes to a file (fileKeyRef, KEP-3721), and for a
// directory of a volume that is chosen by the pod's own name or number (mounts_of_one_pod()).
// Returns what a person should know, with the way out; empty: there is no such volume.
std::string data_only_in_trainer(const TrainingJob& training_job);

// The paths of the training container's mounts that each pod has of its own: their subPathExpr needs a variable such as
// the pod's name or index. A worker has another one, or none, and would not start.
std::set<std::string> mounts_of_one_pod(const TrainingJob& training_job);

// A PersistentVolumeClaim that the training container mounts, and that workers would mount, too.
struct MountedClaim {
  std::string volume;
  std::string claim;
};
std::vector<MountedClaim> mounted_claims(const TrainingJob& training_job);

// The claims that the pods of trainer or workers name as their volumes.
std::set<std::string> claims_of_pods(const TrainingJob& training_job);

// What a person should know, with the way out, of a claim that workers on other nodes cannot mount, for this reason.
std::string data_in_claim(const MountedClaim& mounted, const std::string& reason);

}  // namespace sluice::api
