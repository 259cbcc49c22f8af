// Carries out the orders of a round: writes each, and tells of it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "operator/decide/feeder_resizing.h"
#include "operator/decide/orders.h"
#include "operator/decide/worker_sizing.h"
#include "src/base/result.h"

namespace sluice::decide {

// An order that fails is logged, and follows from the next round; the others do not wait for it.
//
// Thread safety: a value; `perform` and `record` are called on one thread per order under way, `at_once` at most.
struct OrderDelivery {
  std::function<Result<void>(const kube::Action&)> perform;
  std::function<void(kube::Event)> record;
  int at_once = 1;

  // One after the other: few jobs get another size at a time.
  void size_workers(std::vector<SizeOrder> orders) const;

  // They begin in their order: room is freed before it is filled.
  void scale_pools(std::vector<ScaleOrder> orders) const;

  // `refused` is told of each that went wrong, and answers whether people should know (FeederResizing::refused()).
  // It is called on the caller's thread.
  void resize_feeders(std::span<FeederOrder> orders,
                      const std::function<bool(const FeederOrder&, const Error&)>& refused) const;
};

}  // namespace sluice::decide
