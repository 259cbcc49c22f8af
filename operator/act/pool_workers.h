// The worker pods of a pool, as far as its reconcile step needs them.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/act/data_worker_pool.h"
#include "operator/api/pod.h"

namespace sluice::act {

struct Worker {
  std::string name;
  std::string uid;
  std::string created;  // RFC 3339 in UTC: later sorts higher
  std::string reason;   // why it ended
  bool ready = false;
  bool outdated = false;  // made from an earlier template
  bool labelled = false;  // as a worker of the job, by which the Service finds it, and with its template's hash
  std::optional<api::Hindrance> hindrance;
  std::string gate;               // at which it waits
  std::string awaited_scheduler;  // that has not looked at it yet
};

struct Workers {
  std::vector<Worker> live;
  std::vector<Worker> ended;        // Failed, Succeeded or done: an eviction, a node that went away
  std::set<std::string> names;      // taken, by any pod
  std::set<std::string> strangers;  // of these, by pods that no pool made
  std::int64_t ready = 0;
};

// A creation whose pod is neither seen nor given up yet.
bool is_in_flight(const std::pair<const std::string, double>& creation, const PoolWorld& world);

// The pods of the pool by what becomes of them. `hash`: of the template that they should have.
Workers classify(const PoolWorld& world, const PoolMemory& memory, const std::string& hash);

// Forgets the writes that have been seen, and the deletions that were waited for long enough.
PoolMemory settle(PoolMemory memory, const PoolWorld& world);

}  // namespace sluice::act
