#include "operator/publish/operation_metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <fstream>
#include <optional>
#include <utility>

#include <unistd.h>

#include "operator/publish/gauges.h"

namespace sluice::control {
namespace {

using prometheus::MetricFamily;

// proc(5): the second number of statm is the resident set, in pages.
std::optional<double> resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  if (!(statm >> pages >> resident)) return std::nullopt;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

class OperationMetrics final : public prometheus::Collectable {
 public:
  explicit OperationMetrics(std::function<Operation()> see) : see_(std::move(see)) {}

  std::vector<MetricFamily> Collect() const override {
    const Operation now = see_();
    MetricFamily leader = gauge_family("sluice_operator_leader", "1: this replica decides and writes.");
    add(leader, {}, now.leads ? 1 : 0);
    MetricFamily depth = gauge_family("sluice_operator_queue_depth", "Objects that wait for their controller.");
    for (const auto& [controller, waiting] : now.queue_depths)
      add(depth, {{"controller", controller}}, static_cast<double>(waiting));
    MetricFamily age =
        gauge_family("sluice_operator_watch_age_seconds", "Since the API server told something of a kind.");
    for (const auto& [resource, seconds] : now.watch_ages) add(age, {{"resource", resource}}, seconds);
    MetricFamily build = gauge_family("sluice_operator_build_info", "1; the version of this operator.");
    add(build, {{"version", SLUICE_VERSION}}, 1);
    std::vector<MetricFamily> families = {std::move(leader), std::move(depth), std::move(age), std::move(build)};
    if (const auto bytes = resident_bytes()) {
      families.push_back(gauge_family("process_resident_memory_bytes", "Memory of this process."));
      add(families.back(), {}, *bytes);
    }
    return families;
  }

 private:
  const std::function<Operation()> see_;
};

}  // namespace

std::shared_ptr<prometheus::Collectable> make_operation_metrics(std::function<Operation()> see) {
  return std::make_shared<OperationMetrics>(std::move(see));
}

}  // namespace sluice::control
