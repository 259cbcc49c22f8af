// A TrainingJob; crds/sluice.dev_trainingjobs.yaml is the authority on its fields. The API server has validated and
// defaulted them, so absent fields mean the schema's defaults.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "operator/api/object.h"
#include "operator/api/worker_size.h"
#include "scheduler/model/snapshot.h"
#include "src/base/result.h"

namespace sluice::api {

using scheduler::Mode;
using scheduler::Placement;

// The fields as they are written. Thread safety, missing fields: as Object.
class TrainingJob : public Object {
 public:
  using Object::Object;

  std::int64_t trainer_replicas() const;
  const nlohmann::json& trainer_template() const;
  const nlohmann::json& trainer_pod() const;         // the pod spec of that template
  const nlohmann::json& trainer_containers() const;  // an array
  // A field of spec.trainer that a batch/v1 Job has, too; null where it is not set.
  const nlohmann::json& trainer_job_field(std::string_view name) const;
  // After how many seconds the Job of a trainer that is over goes; null: it stays.
  const nlohmann::json& seconds_from_end_to_removal() const;
  // Fewest trainer pods with which an elastic trainer goes on; unset where the trainer is not elastic.
  std::optional<std::int64_t> elastic_min_replicas() const;
  // Several trainer pods that train together or not at all: when one fails, all are started again.
  bool is_gang() const { return trainer_replicas() > 1 && !elastic_min_replicas(); }
  std::int64_t backoff_limit() const;
  // Of the container that trains: the one that spec.trainer.container names, else the first with accelerators,
  // else the one that kubectl would take, or 0.
  std::size_t training_container_index() const;
  std::string placement() const;
  std::string mode() const;
  bool suspended() const;
  // Of one worker; null where their size is left to Sluice.
  const nlohmann::json& worker_resources() const;
  const nlohmann::json& worker_template() const;  // what is merged over the workers' pod template; null: nothing
  AutoResources auto_resources() const;
  const nlohmann::json& feeder_resources() const;
  // Bytes of the feeder's shared memory. Errors: InvalidArgument for a value that is no quantity.
  Result<std::int64_t> arena_bytes() const;

  // Its spec leaves room for remote workers.
  bool wants_workers() const { return mode() != "Off" && placement() != "Local"; }

  bool succeeded() const { return condition_is_true("Succeeded"); }
  bool failed() const { return condition_is_true("Failed"); }
  // The status says that no worker can have the trainer's data.
  bool found_data_only_in_trainer() const;
  // Of the status.
  std::optional<std::int64_t> recommended_workers() const;
  std::int64_t restarts() const;  // how often all trainer pods were started again

  // Of each trainer pod: by its containers' limits, else by what the status says of its claims, else one for each
  // claim.
  std::int64_t trainer_accelerators() const;
};

// The fields of a TrainingJob that the scheduler needs, checked. Thread safety: a value.
struct TrainingJobView {
  std::string name_space;
  std::string name;
  std::string uid;
  bool deleting = false;
  bool finished = false;  // status: Succeeded or Failed is True
  Mode mode = Mode::kAuto;
  Placement placement = Placement::kAuto;  // Local, too, where no worker can have the data
  int trainer_replicas = 1;
  bool is_gang = false;
  std::int64_t backoff_limit = 0;
  std::int64_t restarts = 0;  // status: of the whole gang
  int min_workers = 0;
  int max_workers = 8;
  ContainerResources worker;                    // of one; where their size is left to Sluice, of the first ones
  std::optional<AutoResources> auto_resources;  // where it is
  std::int64_t feeder_cpu_milli = 0;            // request
  std::int64_t feeder_cpu_limit_milli = 0;      // 0: none
  std::int64_t trainer_gpus = 0;                // per trainer pod
  int priority = 0;
  int weight = 100;
  bool suspend = false;
  // Kueue admits the trainer by the requests that it was created with, and does not see a resize (kueue#13646).
  bool queued_by_kueue = false;
  // What jobs have in common that are taken for alike, in two parts with a dot between them: namespace, image, command,
  // arguments, size, the workers' template and the label sluice.dev/like; then the trainer's variables SLUICE_*. Jobs
  // with the same first part are alike, too, but less so. Of digits and small letters.
  std::string likeness;

  void keep_local() {
    placement = Placement::kLocal;
    min_workers = 0;
  }

  // False if no remote worker may run, even if the scheduler would like one.
  bool may_have_workers() const {
    return !deleting && !finished && !suspend && mode != Mode::kOff && placement != Placement::kLocal &&
           max_workers > 0;
  }
};

// Errors: InvalidArgument naming the object and the field (an object written before its schema was tightened).
Result<TrainingJobView> view_training_job(const nlohmann::json& object);

// Of the feeder of a TrainingJob that does not say what it gets: memory for an arena of that size, and for itself.
nlohmann::json default_feeder_resources(std::int64_t arena_bytes);
// Whether its feeder's resources are those of the schema, which has them for an arena of the default size.
bool has_default_feeder_resources(const TrainingJob& training_job);

// The TrainingJob with other resources of its feeder.
nlohmann::json with_feeder_resources(nlohmann::json training_job, nlohmann::json resources);

}  // namespace sluice::api
