#include "worker-image/cache/node_metrics.h"

namespace sluice::node_cache {
namespace {

void show_tiers(program::ShownCounts& shown, const cache::NodeCache& cache, const cache::NodeCounters& counters) {
  const auto tier = [&](const char* name, const cache::TierCounters& counts) {
    shown.counter("sluice_cache_node_hits_total", "Records that were found.", {{"tier", name}}, counts.hits);
    shown.counter("sluice_cache_node_hit_bytes_total", "Bytes of records that were found.", {{"tier", name}},
                  counts.hit_bytes);
  };
  tier("memory", counters.memory);
  tier("disk", counters.disk);
  shown.counter("sluice_cache_node_misses_total", "Records that were not found.", {}, counters.misses);
  const char* bytes = "Bytes that the records take, with what is needed to find them.";
  shown.gauge("sluice_cache_node_bytes", bytes, {{"tier", "memory"}}, [&cache] { return cache.memory_bytes(); });
  shown.gauge("sluice_cache_node_bytes", bytes, {{"tier", "disk"}}, counters.store.bytes_on_disk);
  const char* records = "Records that can be found.";
  shown.gauge("sluice_cache_node_records", records, {{"tier", "memory"}}, [&cache] { return cache.memory_records(); });
  shown.gauge("sluice_cache_node_records", records, {{"tier", "disk"}}, counters.store.records);
}

void show_refused(program::ShownCounts& shown, const char* reason, const cache::Count& count) {
  shown.counter("sluice_cache_node_refused_total", "What was not listened to.", {{"reason", reason}}, count);
}

void show_sharing(program::ShownCounts& shown, const cache::NodeCounters& counters) {
  const cache::Counters& store = counters.store;
  shown.counter("sluice_cache_node_announced_epochs_total", "Epochs whose order is known.", {},
                counters.announced_epochs);
  shown.counter("sluice_cache_node_evicted_total", "Records that went for others.", {}, store.evicted);
  shown.counter("sluice_cache_node_evicted_bytes_total", "Their bytes.", {}, store.evicted_bytes);
  shown.counter("sluice_cache_node_stored_bytes_total", "Bytes of records that were kept.", {}, store.stored_bytes);
  shown.counter("sluice_cache_node_rewritten_bytes_total", "Bytes that were written again to make room.", {},
                store.rewritten_bytes);
}

void show_losses(program::ShownCounts& shown, const cache::NodeCounters& counters, const NodeService& service) {
  const auto not_stored = [&](const char* reason, const cache::Count& count) {
    shown.counter("sluice_cache_node_not_stored_total", "Records that were not kept.", {{"reason", reason}}, count);
  };
  not_stored("full", counters.store.not_stored_full);
  not_stored("failed", counters.store.not_stored_failed);
  const auto error = [&](const char* kind, const cache::Count& count) {
    shown.counter("sluice_cache_node_errors_total", "What was wrong with the cache's disk.", {{"kind", kind}}, count);
  };
  error("damaged", counters.store.damaged);
  error("read", counters.store.read_errors);
  error("write", counters.store.write_errors);
  error("version", counters.store.other_versions);
  show_refused(shown, "busy", service.refused());
  show_refused(shown, "message", counters.refused_messages);
}

void show_servers(program::ShownCounts& shown, const transport::UnaryCounters& servers, const TenantService* pods) {
  const auto refused = [&](const char* reason, const cache::Count& count) { show_refused(shown, reason, count); };
  refused("calls", servers.refused_calls);
  refused("connections", servers.refused_connections);
  refused("user", servers.refused_users);
  if (pods != nullptr) refused("token", pods->refused());
  shown.gauge("sluice_cache_node_connections", "Processes that are connected.", {}, servers.connections);
}

void show_peers(program::ShownCounts& shown, const Peers& peers) {
  const PeerCounters& counters = peers.counters();
  const auto forwarded = [&](const char* question, const cache::Count& count) {
    shown.counter("sluice_cache_node_forwarded_total", "Questions that a record's home on another node has answered.",
                  {{"question", question}}, count);
  };
  forwarded("find", counters.finds);
  forwarded("keep", counters.keeps);
  forwarded("announce", counters.announcements);
  shown.counter("sluice_cache_node_peer_hits_total", "Records that came from another node.", {}, counters.hits);
  shown.counter("sluice_cache_node_peer_hit_bytes_total", "Their bytes.", {}, counters.hit_bytes);
  const auto error = [&](const char* kind, const cache::Count& count) {
    shown.counter("sluice_cache_node_peer_errors_total", "What was wrong with other nodes' caches.", {{"kind", kind}},
                  count);
  };
  error("damaged", counters.errors.damaged);
  error("gone", counters.errors.node_gone);
  error("late", counters.errors.node_late);
  error("busy", counters.errors.node_busy);
  error("wrong", counters.errors.node_wrong);
  error("refused", counters.errors.node_refused);
  shown.gauge("sluice_cache_node_peers", "Other nodes' caches that share their records.", {},
              [&peers] { return peers.count(); });
}

}  // namespace

program::ShownCounts room_counts(prometheus::Registry& registry, const cache::NodeCache& cache,
                                 const cache::NodeCounters& counters, const NodeService& service, const Peers* peers,
                                 const std::string& room) {
  program::ShownCounts shown(
      registry, {}, room.empty() ? program::ShownCounts::Labels() : program::ShownCounts::Labels{{"room", room}});
  show_tiers(shown, cache, counters);
  show_sharing(shown, counters);
  show_losses(shown, counters, service);
  if (peers != nullptr) show_peers(shown, *peers);
  return shown;
}

program::ShownCounts shown_counts(prometheus::Registry& registry, const cache::NodeCache& cache,
                                  const cache::NodeCounters& counters, const NodeService& service,
                                  const transport::UnaryCounters& servers, const TenantService* pods,
                                  const Peers* peers) {
  program::ShownCounts shown = room_counts(registry, cache, counters, service, peers, "");
  show_servers(shown, servers, pods);
  return shown;
}

}  // namespace sluice::node_cache
