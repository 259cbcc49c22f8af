// What people do to the cluster in a simulation, and how the jobs behave: a file in
// operator/fault_simulation/workloads.
//
//   nodes: [{name, cpu, labels, taints}]     the last two may be left out
//   pathDependent: true  the workers of a sated job depend on the order of events, so random faults may leave
//                        another resting state than a run without any
//   resizesPods: true    a server that resizes pods in place, and feeders that use the CPU that they request
//   physics: {JOB: {demand, localRate, remoteRate, localCores, seconds, memoryMebibytes}}   see
//   scheduler/testing/fluid.h; `seconds`
//                                                                             of training, absent: for ever;
//                                                                             the memory is that of a worker
//   timeline: [{at: seconds, create: {...}} | {at, patch: PLURAL/NAME, with: {...}} | {at, delete: PLURAL/NAME} |
//              {at, scale: POOL, replicas} | {at, createPool: {...}} | {at, createClaim: {...}} |
//              {at, overwrite: POOL, template: {...}} | {at, putBack: POOL} |
//              {at, correct: PLURAL/NAME, remake: true} | {at, drain: NODE} | {at, removeNode: NODE} |
//              {at, addNode: NODE}]
//              a created TrainingJob is merged into a complete one; onceThereIsJob: NAME puts an action off until then,
//              onceTold: NAME until the job or its pool is as it was asked for or says why not, onceServed: NAME until
//              its pool has a worker; ifThere: true leaves out what its object is not there for
//              odd: POINTER   to the pod template in what is created: a plan's damages are done to it. They are done to
//                             what a pool is overwritten with, too
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/testing/fluid.h"
#include "src/base/result.h"

namespace sluice::simulation {

struct Physics {
  scheduler::testing::FluidJob fluid;
  double train_seconds = std::numeric_limits<double>::infinity();
  std::int64_t worker_memory_bytes = 0;  // that a worker uses; one with a lower limit is stopped for it
};

struct UserAction {
  double at_seconds = 0;
  nlohmann::json action;
};

// Thread safety: a value.
struct Workload {
  std::string name;
  nlohmann::json nodes;
  bool resizes_pods = false;
  bool path_dependent = false;
  std::map<std::string, Physics> physics;
  std::vector<UserAction> timeline;
  std::map<std::string, nlohmann::json> odd_templates;  // by the object's name: valid ones, which a plan may damage
  double ends_at_seconds = 0;                           // of the timeline
};

// The pod template, in what an action writes, that a plan may damage.
struct OddTemplate {
  std::string object;                  // its name
  nlohmann::json::json_pointer place;  // in the action
};
std::optional<OddTemplate> odd_template(const nlohmann::json& action);

// Read once, from the files in the source tree (the working directory). Errors: NotFound, InvalidArgument.
Result<const Workload*> workload(const std::string& name);

const std::vector<std::string>& workload_names();

}  // namespace sluice::simulation
