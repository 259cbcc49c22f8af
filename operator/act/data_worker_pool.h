// Reconcile step of a DataWorkerPool: its worker pods and its status.
//
// Pods have the names JOB-worker-N with the lowest free N: creating one twice meets the first. Scale-in picks the
// victim here and deletes it gracefully: the worker drains on SIGTERM. Nothing is done twice because a cache is late:
// writes in flight are remembered (PoolMemory) until they are seen or 30 s have passed.
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

// How long a status still waits that has waited for so long, while the API server is busy for so long with what people
// wait for. Where that takes a second or more it waits for the last of it, a minute at most, and looks again in
// between: one that went by its own time only would come in the middle, when half of the pods are written.
double report_wait_seconds(double waited_seconds, double busy_seconds);

struct PoolWorld {
  kube::ObjectPointer pool;
  // Every pod of the namespace that carries the job's label and the component "worker": the pool's own, and a
  // namesake's that are not gone yet (their names are taken).
  std::vector<kube::ObjectPointer> pods;
  // Names of pods to give up first, from the scheduler's plan. May be empty or out of date.
  std::vector<std::string> victims;
  // Of a clock that only goes forward, from whenever: were it the wall clock, its next correction would be a pause.
  double now_seconds = 0;
  std::string now;  // the wall clock, RFC 3339
  // How long there is something more urgent to write than a status; of which there is none at 0.
  double busy_seconds = 0;
};

// What the controller remembers of a pool between two steps. It may be lost: names are deterministic and deletions
// carry the pod's uid, so the worst is a refused request.
struct PoolMemory {
  std::map<std::string, double> creating_until;  // pod name -> when to stop waiting for it to be seen
  std::map<std::string, double> deleting_until;  // pod uid -> the same
  int failures = 0;                              // how often pods ended by themselves since all were last ready
  double replace_not_before_seconds = 0;
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
};

PoolStep reconcile_pool(const PoolWorld& world, const PoolMemory& memory);

// `action` and those after it did not happen: `memory` must not wait for them.
void forget_failed(PoolMemory& memory, const std::vector<kube::Action>& actions, std::size_t first_failed);

}  // namespace sluice::act
