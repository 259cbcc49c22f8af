// From a plan to the writes that carry it out.
//
// Pure functions; thread-safe.
#pragma once

#include <set>
#include <vector>

#include "operator/observe/snapshot_builder.h"
#include "scheduler/model/plan.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"

namespace sluice::decide {

// Sets the pool's number of workers, as the scheduler's field manager; only if it still is this pool.
kube::Action scale_pool(const nlohmann::json& pool, int replicas);

struct ScaleOrder {
  kube::Action action;  // server-side apply of the pool's spec.replicas
  kube::Event event;    // for after it has succeeded
  int from = 0;
  int to = 0;
};

// One order per job in mode Auto whose pool has another number of replicas than the plan. Shrinking pools come first,
// so that room is freed before it is filled. In modes Recommend and Off the pool's number belongs to a person or
// another controller. The pools of `held` jobs wait for feeders to grow in place of workers. They shrink only by the
// workers on hosts of their trainers, which hold the CPU that the feeders are to have.
std::vector<ScaleOrder> scale_orders(const observe::ClusterObjects& objects, const scheduler::Plan& plan,
                                     const std::set<scheduler::JobId>& held = {});

}  // namespace sluice::decide
