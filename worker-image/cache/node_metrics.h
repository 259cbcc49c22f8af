// The metrics of the node's cache (docs/metrics.md).
#pragma once

#include "src/cache/node_cache.h"
#include "src/transport/unary_server.h"
#include "worker-image/cache/node_service.h"
#include "worker-image/cache/tenant_service.h"
#include "worker-image/program/shown_counts.h"

namespace sluice::node_cache {

// Of one room of the cache, as shown_counts(). `room`: its name, the label `room`; empty: no label. `peers`: null where
// records are not shared with other nodes.
program::ShownCounts room_counts(prometheus::Registry& registry, const cache::NodeCache& cache,
                                 const cache::NodeCounters& counters, const NodeService& service, const Peers* peers,
                                 const std::string& room);

// To be brought up to date by tick(). `pods`: null where none connect. REQUIRES: all arguments outlive it.
program::ShownCounts shown_counts(prometheus::Registry& registry, const cache::NodeCache& cache,
                                  const cache::NodeCounters& counters, const NodeService& service,
                                  const transport::UnaryCounters& servers, const TenantService* pods,
                                  const Peers* peers = nullptr);

}  // namespace sluice::node_cache
