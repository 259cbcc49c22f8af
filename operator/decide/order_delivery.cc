#include "operator/decide/order_delivery.h"

#include <string>
#include <tuple>
#include <utility>

#include "src/base/in_parallel.h"
#include "src/base/logging.h"

namespace sluice::decide {

void OrderDelivery::size_workers(std::vector<SizeOrder> orders) const {
  for (SizeOrder& order : orders) {
    if (const auto done = perform(order.action); !done.ok()) {
      log_warning("decide", "sizing failed",
                  {{"pool", order.action.key.to_string()}, {"error", done.error().to_string()}});
    } else if (order.event) {
      log_info("decide", order.action.to_string(), {{"why", order.event->note}});
      record(std::move(*order.event));
    }
  }
}

void OrderDelivery::scale_pools(std::vector<ScaleOrder> orders) const {
  std::ignore = in_parallel(static_cast<int>(std::ssize(orders)), at_once, [&](int index) -> Result<void> {
    ScaleOrder& order = orders[index];
    const std::string job = order.event.key.to_string();
    if (const auto done = perform(order.action); !done.ok()) {
      log_warning("decide", "scaling failed", {{"job", job}, {"error", done.error().to_string()}});
      return {};
    }
    log_info("decide", "scaled", {{"job", job}, {"from", order.from}, {"to", order.to}, {"why", order.event.note}});
    record(std::move(order.event));
    return {};
  });
}

void OrderDelivery::resize_feeders(std::span<FeederOrder> orders,
                                   const std::function<bool(const FeederOrder&, const Error&)>& refused) const {
  std::vector<Result<void>> outcomes(orders.size());
  std::ignore = in_parallel(static_cast<int>(std::ssize(orders)), at_once, [&](int index) -> Result<void> {
    outcomes[index] = perform(orders[index].action);
    return {};
  });
  for (std::size_t index = 0; index < orders.size(); ++index) {
    FeederOrder& order = orders[index];
    if (outcomes[index].ok()) {
      log_info("decide", order.action.to_string(), {{"why", order.event.note}});
      record(std::move(order.event));
      continue;
    }
    const Error& error = outcomes[index].error();
    log_warning("decide", "resizing failed", {{"pod", order.action.key.to_string()}, {"error", error.to_string()}});
    if (!refused(order, error)) continue;
    order.event.type = kube::EventType::kWarning;
    order.event.reason = "FeederResizeRefused";
    order.event.action = "Resize";
    order.event.note = error.message();
    record(std::move(order.event));
  }
}

}  // namespace sluice::decide
