// Reconcile step of a DataWorkerPool: its worker pods and its status.
//
// Pods have the names JOB-worker-N with the lowest free N: creating one twice meets the first. A name that a stranger's
// pod has is passed over, and an event says so. Scale-in picks the victim here and deletes it gracefully: the worker
// drains on SIGTERM. A late cache repeats nothing, because writes in flight are remembered (PoolMemory). A creation
// counts as lost if its answer was lost, or if its pod has not been seen for 30 s. It is repeated under its name before
// a free name is taken. So at worst it meets the pod that it has made.
//
// Pure: no I/O, no clock. Thread safety: pure functions on values.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/kube/action.h"
#include "src/kube/event_recorder.h"
#include "src/kube/store.h"

namespace sluice::act {

// The rest of a status's wait, after `waited_seconds` of it, while urgent writes take the API server `busy_seconds`. If
// these take a second or more, the status waits for the last of them, a minute at most, and looks again in between.
// Without that, the status would come when half of the pods are written.
double report_wait_seconds(double waited_seconds, double busy_seconds);

struct PoolWorld {
  kube::ObjectPointer pool;
  // Every pod of the namespace with the job's label and the component "worker". Beside the pool's own there may be pods
  // of an earlier pool of this name: their names are taken.
  std::vector<kube::ObjectPointer> pods;
  // Names of pods to give up first, from the scheduler's plan. May be empty or out of date.
  std::vector<std::string> victims;
  // Nodes on which the plan has found room for workers that are not there yet; the last one is for the last of them.
  std::vector<std::string> new_worker_nodes;
  // Of a clock that only goes forward. A correction of the wall clock would be a pause.
  double now_seconds = 0;
  std::string now;  // the wall clock, RFC 3339
  // The time until all writes that are more urgent than a status are done; 0: there are none.
  double busy_seconds = 0;
};

struct Refusal {
  std::string reason;  // of the condition Ready
  std::string message;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// The controller's memory of a pool between two steps. It may be lost: names are deterministic and deletions
// carry the pod's uid, so the worst is a refused request.
struct PoolMemory {
  // Pod name -> until when it counts as a worker that has not been seen. Kept until it is seen.
  std::map<std::string, double> creating_until;
  std::map<std::string, double> deleting_until;  // pod uid -> when to stop waiting for the deletion to be seen
  int failures = 0;                              // how often pods ended by themselves since all were last ready
  double replace_not_before_seconds = 0;
  std::map<std::string, double> hindered_since;  // pod uid -> since when it cannot start
  std::map<std::string, double> unplaced_since;  // pod uid -> since when its scheduler is awaited
  // The hindrance of the last worker that was given up. It is forgotten when all workers are ready.
  std::optional<Refusal> hindered;
  // The API server's refusal of the last worker, if a person must act.
  std::optional<Refusal> refused;
  int refusals = 0;  // in a row
  double refused_until_seconds = 0;
  std::string refused_template;  // its hash: a corrected one is tried at once
  // Pod name -> until when it is left alone: a stranger's pod has it, and is not in PoolWorld::pods.
  std::map<std::string, double> taken_until;
  // On the way to the wanted number: since when nothing has been reported.
  std::optional<double> unreported_since_seconds;

  friend bool operator==(const PoolMemory&, const PoolMemory&) = default;
};

struct PoolStep {
  std::vector<kube::Action> actions;  // on pods
  std::optional<kube::Action> status;
  std::vector<kube::Event> events;  // for after the pods' actions have succeeded
  PoolMemory memory;                // if all actions succeed; see forget_failed
  std::optional<std::chrono::milliseconds> again_after;

  void look_again(double wait_seconds);  // or earlier, as has been asked for before
};

// A pool that no TrainingJob controls gets no worker, and a pool with an invalid template gets no new one. The status
// of the pool says so.
PoolStep reconcile_pool(const PoolWorld& world, const PoolMemory& memory);

// The step of a pool that is not usable: nothing but its condition Ready, which is False.
PoolStep refuse_pool(const PoolWorld& world, const PoolMemory& memory, const Refusal& refusal);

// `action` failed: `memory` must not wait for it. It may have happened, as an answer can be lost.
void forget_failed(PoolMemory& memory, const kube::Action& action);

// A stranger's pod has the name that `action` asked for. The next worker gets another one, and an event on the pool and
// on the TrainingJob names the pod.
void note_taken(PoolStep& step, const PoolWorld& world, const kube::Action& action);

// No worker is asked for again before a minute has passed, or two, or four; five at most.
void note_refused(PoolMemory& memory, const PoolWorld& world, Refusal refusal);

}  // namespace sluice::act
