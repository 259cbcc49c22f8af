// What the node has kept for each job, as a metric (docs/metrics.md): by it the operator places data workers.
//
// Bounds: of the jobs that the cache knows, the kJobsMost with the most bytes. Thread safety: none. The registry itself
// may be scraped at any time.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "src/cache/node_cache.h"

namespace prometheus {
class Gauge;
class Registry;
template <typename Metric>
class Family;
}  // namespace prometheus

namespace sluice::node_cache {

class KeptGauges {
 public:
  static constexpr std::size_t kJobsMost = 32;
  using Labels = std::map<std::string, std::string>;

  // Of one room of the cache on `node`; `room`: empty: of that which has no name. REQUIRES: registry and cache outlive
  // it.
  KeptGauges(prometheus::Registry& registry, const cache::NodeCache& cache, const std::string& node,
             const std::string& room);

  // Looks through the records: milliseconds, where they are many. To be called every some seconds.
  void tick();

 private:
  prometheus::Family<prometheus::Gauge>& family_;
  const cache::NodeCache& cache_;
  const Labels shared_;
  std::map<Labels, prometheus::Gauge*> shown_;
};

}  // namespace sluice::node_cache
