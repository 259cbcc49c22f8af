#include "operator/act/pool_workers.h"

#include <utility>

#include "operator/api/data_worker_pool.h"
#include "operator/api/names.h"

namespace sluice::act {

using namespace api;

bool is_in_flight(const std::pair<const std::string, double>& creation, const PoolWorld& world) {
  return creation.second > world.now_seconds;
}

Workers classify(const PoolWorld& world, const PoolMemory& memory, const std::string& hash) {
  Workers workers;
  for (const kube::ObjectPointer& pod : world.pods) {
    const Pod seen(*pod);
    Worker worker{seen.name(), seen.uid(), seen.created(), seen.reason()};
    workers.names.insert(worker.name);
    if (!seen.controlled_by(Object(*world.pool))) {
      if (!seen.deleting() && seen.controller().kind != kPoolKind) workers.strangers.insert(worker.name);
      continue;
    }
    if (seen.deleting() || memory.deleting_until.contains(worker.uid)) continue;
    worker.ready = seen.ready();
    worker.outdated = seen.template_hash() != hash;
    worker.labelled =
        seen.is_worker() && seen.job() == DataWorkerPool(*world.pool).job() && !seen.template_hash().empty();
    worker.hindrance = seen.hindrance();
    worker.gate = seen.gate();
    worker.awaited_scheduler = seen.awaited_scheduler();
    const bool has_ended = seen.ended() || seen.worker_is_done();
    if (!has_ended && worker.ready) ++workers.ready;
    (has_ended ? workers.ended : workers.live).push_back(std::move(worker));
  }
  for (const auto& creation : memory.creating_until)
    if (is_in_flight(creation, world)) workers.names.insert(creation.first);
  for (const auto& [name, until] : memory.taken_until) workers.names.insert(name);
  return workers;
}

PoolMemory settle(PoolMemory memory, const PoolWorld& world) {
  std::set<std::string> names;
  std::set<std::string> alive;
  for (const kube::ObjectPointer& pod : world.pods) {
    const Pod seen(*pod);
    names.insert(seen.name());
    if (!seen.deleting()) alive.insert(seen.uid());
  }
  std::erase_if(memory.creating_until, [&](const auto& entry) { return names.contains(entry.first); });
  std::erase_if(memory.taken_until, [&](const auto& entry) { return entry.second <= world.now_seconds; });
  std::erase_if(memory.unplaced_since, [&](const auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(memory.hindered_since, [&](const auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(memory.deleting_until,
                [&](const auto& entry) { return !alive.contains(entry.first) || entry.second <= world.now_seconds; });
  return memory;
}

}  // namespace sluice::act
