// The rooms that a node's cache is divided into: parts of its disk and memory, each for some namespaces.
//
// What a namespace keeps never takes the place of another room's records, and no other room's jobs can fill its part.
// All namespaces that no room names have what is left, together. A shared room is a grant: its namespaces find what any
// of them has kept.
// Thread safety: values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::node_cache {

inline constexpr std::size_t kRoomsMost = 16;

struct RoomPlan {
  std::string name;  // empty: of all namespaces that no other room names
  int percent = 0;   // of disk and memory
  std::vector<std::string> namespaces;
  bool is_shared = false;

  std::uint64_t part_of(std::uint64_t whole) const {
    const auto part = static_cast<std::uint64_t>(percent);
    return whole / 100 * part + whole % 100 * part / 100;
  }
  // Whose records its namespace's are: its own, or those of all of the room's.
  std::string tenant(const std::string& name_space) const;
};

// "NAME:PERCENT:NAMESPACE,NAMESPACE" or "NAME:PERCENT:NAMESPACE,NAMESPACE:shared", with ";" between two. The room
// without a name comes first. Errors: InvalidArgument with the room and the way out: a name or a namespace that is
// none or is said twice, a percentage that is none, rooms that leave nothing, more than kRoomsMost.
Result<std::vector<RoomPlan>> parse_rooms(std::string_view text);

}  // namespace sluice::node_cache
