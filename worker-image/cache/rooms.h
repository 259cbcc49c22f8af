// The caches of all rooms of a node (room_plan.h), each with a disk and a memory of its own, and the way of a namespace
// to its own.
//
// The default room's directory is the one that was given, those of others lie within it. What is on its way to and from
// all rooms has one bound (Allowances).
// Thread safety: place_of() may be called from any thread, and so may what it leads to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "worker-image/cache/node_service.h"
#include "worker-image/cache/room_plan.h"
#include "worker-image/cache/tenant_service.h"

namespace sluice::node_cache {

struct Room {
  Room(RoomPlan its_plan, std::uint64_t memory_bytes, std::unique_ptr<Peers> its_peers, const Allowances& allowances)
      : plan(std::move(its_plan)),
        peers(std::move(its_peers)),
        cache(plan.part_of(memory_bytes), counters, /*tells_room=*/peers != nullptr),
        service(cache, peers.get(), allowances) {}

  const RoomPlan plan;
  const std::unique_ptr<Peers> peers;  // the same room of the other daemons; null: records are not shared with any
  cache::NodeCounters counters;
  cache::NodeCache cache;
  NodeService service;
};

class Rooms {
 public:
  // Each room has peers of its own, as what they say of their free bytes is of that room. null: records are not shared
  // with other daemons. REQUIRES: the plans are those of parse_rooms().
  using MakePeers = std::function<std::unique_ptr<Peers>()>;
  Rooms(const std::vector<RoomPlan>& plans, std::uint64_t memory_bytes, const MakePeers& make_peers);

  const std::vector<std::unique_ptr<Room>>& all() const { return rooms_; }
  // Of namespaces that no other room names, and of those who ask without one.
  Room& default_room() const { return *rooms_.front(); }
  TenantService::Place place_of(const std::string& name_space) const;
  // These are the daemons by now. By one thread at a time.
  void set_peers(const std::set<std::string>& addresses) const;

  // What opens a room's disk, of so many bytes for all of them. REQUIRES: the clock outlives it.
  static cache::OpenSharedDisk disk_of(const RoomPlan& plan, const std::string& directory, std::uint64_t bytes,
                                       const Clock& clock);
  bool are_open() const;

 private:
  std::vector<std::unique_ptr<Room>> rooms_;
  std::map<std::string, Room*> by_namespace_;
};

}  // namespace sluice::node_cache
