#include "worker-image/cache/rooms.h"

#include <algorithm>

namespace sluice::node_cache {

Rooms::Rooms(const std::vector<RoomPlan>& plans, std::uint64_t memory_bytes, const MakePeers& make_peers) {
  const Allowances allowances;
  for (const RoomPlan& plan : plans) {
    rooms_.push_back(
        std::make_unique<Room>(plan, memory_bytes, make_peers == nullptr ? nullptr : make_peers(), allowances));
    for (const std::string& name_space : plan.namespaces) by_namespace_[name_space] = rooms_.back().get();
  }
}

TenantService::Place Rooms::place_of(const std::string& name_space) const {
  const auto found = by_namespace_.find(name_space);
  Room& room = found == by_namespace_.end() ? default_room() : *found->second;
  return {room.service, room.plan.tenant(name_space)};
}

void Rooms::set_peers(const std::set<std::string>& addresses) const {
  for (const auto& room : rooms_)
    if (room->peers != nullptr) room->peers->set(addresses);
}

cache::OpenSharedDisk Rooms::disk_of(const RoomPlan& plan, const std::string& directory, std::uint64_t bytes,
                                     const Clock& clock) {
  cache::Limits limits;
  limits.bytes = plan.part_of(bytes);
  limits.records = plan.part_of(limits.records);
  limits.order_bytes = plan.part_of(limits.order_bytes);
  const std::string place = plan.name.empty() ? directory : directory + "/room-" + plan.name;
  return cache::shared_disk_on(cache::make_system_disk(place), limits, clock);
}

bool Rooms::are_open() const {
  return std::all_of(rooms_.begin(), rooms_.end(), [](const auto& room) { return room->cache.is_open(); });
}

}  // namespace sluice::node_cache
