// A DataWorkerPool; crds/sluice.dev_dataworkerpools.yaml is the authority on its fields.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/node_rules.h"
#include "operator/api/object_draft.h"
#include "operator/api/spread_term.h"
#include "operator/api/worker_size.h"

namespace sluice::api {

// Thread safety, missing fields: as Object.
class DataWorkerPool : public Object {
 public:
  using Object::Object;

  // Whether the TrainingJob of its own name controls it. Another pool is none that the operator made, and not obeyed.
  bool is_of_its_job() const;
  std::string job() const;        // the TrainingJob's name
  std::int64_t replicas() const;  // that are wanted
  // Of the workers, with the resources that Sluice has chosen for them.
  nlohmann::json pod_template() const;
  bool has_worker_resources() const;
  ContainerResources worker_resources() const;  // of a worker made now, before the namespace's defaults
  // What they request; none: there are none, or they are no size that a worker can have.
  std::optional<WorkerSize> worker_size() const;
  std::string priority_class() const;            // of the workers; empty: none
  NodeRules node_rules() const;                  // of the workers
  std::vector<SpreadTerm> spread_terms() const;  // of the workers
  std::int64_t ready_replicas() const;           // of the status
  std::string planned_workers() const;           // the number that the scheduler set last; empty: none yet
};

// The pool of a TrainingJob, without its number of workers. That belongs to the scheduler, or in mode Recommend to the
// pool's own autoscaler.
//
// Thread safety: none; one owner.
class DataWorkerPoolDraft : public ObjectDraft {
 public:
  DataWorkerPoolDraft(std::string_view name_space, std::string_view job);

  void set_worker_template(nlohmann::json pod_template);
};

// What the scheduler says of a pool: its number of workers, and that it has set this number.
nlohmann::json planned_workers_patch(std::int64_t workers);
// What it says of the workers' size; null takes the size away.
nlohmann::json worker_resources_patch(nlohmann::json resources);

}  // namespace sluice::api
