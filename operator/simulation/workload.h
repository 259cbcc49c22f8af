// What people do to the cluster in a simulation, and how the jobs behave: a file in operator/simulation/workloads.
//
//   nodes: [{name, cpu}]
//   physics: {JOB: {demand, localRate, remoteRate, localCores, seconds}}      see scheduler/testing/fluid.h; `seconds`
//                                                                             of training, absent: for ever
//   timeline: [{at: seconds, create: {...}} | {at, patch: PLURAL/NAME, with: {...}} | {at, delete: PLURAL/NAME} |
//              {at, scale: POOL, replicas}]      a created TrainingJob is merged into a complete one;
//                                                  onceThereIsJob: NAME   puts an action off until then
#pragma once

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/testing/fluid.h"
#include "src/base/result.h"

namespace sluice::simulation {

struct Physics {
  scheduler::testing::FluidJob fluid;
  double train_seconds = std::numeric_limits<double>::infinity();
};

struct UserAction {
  double at_seconds = 0;
  nlohmann::json action;
};

// Thread safety: a value.
struct Workload {
  std::string name;
  nlohmann::json nodes;
  std::map<std::string, Physics> physics;
  std::vector<UserAction> timeline;
  double ends_at_seconds = 0;  // of the timeline
};

// Read once, from the files in the source tree (the working directory). Errors: NotFound, InvalidArgument.
Result<const Workload*> workload(const std::string& name);

const std::vector<std::string>& workload_names();

}  // namespace sluice::simulation
