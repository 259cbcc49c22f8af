// Metrics as a page of Server, in Prometheus' text format 0.0.4.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "src/http/server.h"

namespace prometheus {
class Collectable;
}

namespace sluice::http {

// The page "/metrics" of everything the collectables (registries, or objects that render at scrape time) hold.
// Collectables that no longer exist are skipped.
PageMaker metrics_page(std::vector<std::weak_ptr<prometheus::Collectable>> collectables);

}  // namespace sluice::http
