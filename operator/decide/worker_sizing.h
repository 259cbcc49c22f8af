// The size of data workers whose TrainingJob leaves it to Sluice: memory by measured use.
//
//   request  the most memory that a worker used, and 15 % more, within the job's bounds
//   change   by a fifth or more; the pool then replaces a tenth of its workers at a time
//   larger   at once where a worker ran out of memory: twice what it had, and no less for the rest of the job
//   smaller  once a worker has been ready for ten minutes
//   never    for a job that ends within ten minutes, unless a worker ran out of memory
//   CPU      is chosen only while there is no worker
// The margin is that of the Vertical Pod Autoscaler.
//
// Thread safety: none; one owner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/observe/snapshot_builder.h"
#include "scheduler/model/plan.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"

namespace sluice::decide {

struct NewSize {
  api::WorkerSize size;
  std::string why;  // for people
};

// None: the size stays. `least_bytes`: with half of it a worker ran out of memory; 0: none did.
std::optional<NewSize> next_size(const observe::SizedWorkers& workers, std::int64_t least_bytes,
                                 std::optional<double> remaining_seconds);

struct SizeOrder {
  kube::Action action;
  std::optional<kube::Event> event;  // none: a size that was chosen is withdrawn
};

class WorkerSizing {
 public:
  // Pure but for what it remembers of workers that ran out of memory.
  std::vector<SizeOrder> orders(const observe::ClusterObjects& objects,
                                const std::map<scheduler::JobId, observe::SizedWorkers>& workers,
                                const scheduler::Plan& plan);

 private:
  std::map<std::string, std::int64_t> least_bytes_;  // by the TrainingJob's uid
};

}  // namespace sluice::decide
