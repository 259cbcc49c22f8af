// How the operator itself fares, as gauges that are rendered at scrape time; docs/metrics.md.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace prometheus {
class Collectable;
}

namespace sluice::control {

// Thread safety: a value.
struct Operation {
  bool leads = false;
  std::map<std::string, std::size_t> queue_depths;  // objects that wait, by controller
  std::map<std::string, double> watch_ages;         // seconds since the API server told something, by resource
};

// For http::metrics_page, with the process's memory and the version besides. `see` is called for each scrape, on the
// page's thread. REQUIRES: what `see` uses outlives the page.
std::shared_ptr<prometheus::Collectable> make_operation_metrics(std::function<Operation()> see);

}  // namespace sluice::control
