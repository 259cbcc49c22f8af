#include "worker-image/cache/kept_gauges.h"

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <utility>

#include "src/base/checksum.h"

namespace sluice::node_cache {
KeptGauges::KeptGauges(prometheus::Registry& registry, const cache::NodeCache& cache, const std::string& node,
                       const std::string& room)
    : family_(prometheus::BuildGauge()
                  .Name("sluice_cache_node_kept_bytes")
                  .Help("Bytes on the disk of what a job asks for, whichever job has brought it.")
                  .Labels({{"cache_node", node}})
                  .Register(registry)),
      cache_(cache),
      shared_(room.empty() ? Labels() : Labels{{"room", room}}) {}

void KeptGauges::tick() {
  auto kept = cache_.kept_for_jobs();
  std::sort(kept.begin(), kept.end(), [](const auto& one, const auto& other) { return one.bytes > other.bytes; });
  if (kept.size() > kJobsMost) kept.resize(kJobsMost);
  std::map<Labels, prometheus::Gauge*> before = std::exchange(shown_, {});
  for (const auto& [job, data_set, bytes] : kept) {
    Labels labels = shared_;
    labels["asker"] = hexadecimal(job);
    if (data_set) labels["data_set"] = hexadecimal(*data_set);
    before.erase(labels);
    prometheus::Gauge& gauge = family_.Add(labels);  // the one that is there, if it is
    gauge.Set(bytes);
    shown_.emplace(std::move(labels), &gauge);
  }
  for (const auto& [labels, gauge] : before) family_.Remove(gauge);
}

}  // namespace sluice::node_cache
