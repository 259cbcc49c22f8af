// What the operator reads from a TrainingJob, typed. crds/trainingjobs.yaml is the authority on the fields; the API
// server has validated and defaulted them, so absent fields mean the schema's defaults.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scheduler/snapshot.h"
#include "src/base/result.h"

namespace sluice::observe {

using scheduler::Mode;
using scheduler::Placement;

struct TrainingJobView {
  std::string name_space;
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  std::string creation_timestamp;  // RFC 3339
  bool deleting = false;
  bool finished = false;  // status: Succeeded or Failed is True
  Mode mode = Mode::kAuto;
  Placement placement = Placement::kAuto;
  int trainer_replicas = 1;
  int min_workers = 0;
  int max_workers = 8;
  std::int64_t worker_cpu_milli = 0;
  std::int64_t feeder_cpu_milli = 0;        // request
  std::int64_t feeder_cpu_limit_milli = 0;  // 0: none
  std::int64_t trainer_gpus = 0;            // per trainer pod; any extended resource whose name ends in "gpu"
  int priority = 0;
  int weight = 100;
  bool suspend = false;

  std::string key() const { return name_space + "/" + name; }
  // False where no remote worker may run, whatever the scheduler would like.
  bool may_have_workers() const {
    return !deleting && !finished && !suspend && mode != Mode::kOff && placement != Placement::kLocal &&
           max_workers > 0;
  }
};

// Errors: InvalidArgument naming the object and the field (an object written before its schema was tightened).
Result<TrainingJobView> view_training_job(const nlohmann::json& object);

// The index of the container that trains in spec.trainer.template.spec.containers.
// REQUIRES: the object passed the schema (at least one container; spec.trainer.container, if given, exists).
std::size_t training_container_index(const nlohmann::json& object);

}  // namespace sluice::observe
