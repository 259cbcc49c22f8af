#include "worker-image/cache/room_plan.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace sluice::node_cache {
namespace {

constexpr std::string_view kShared = "shared";
constexpr char kSharedMark = '+';  // no namespace's name has it

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// As Kubernetes names namespaces.
bool is_name(std::string_view text) {
  const auto is_letter = [](char each) { return (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9'); };
  return !text.empty() && text.size() <= 63 && is_letter(text.front()) && is_letter(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char each) { return is_letter(each) || each == '-'; });
}

int percent_of(const std::string& text) {
  int percent = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), percent);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? percent : 0;
}

Result<RoomPlan> parse_room(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  const bool is_shared = parts.size() == 4 && parts[3] == kShared;
  if (parts.size() != 3 && !is_shared)
    return invalid_argument("room '" + text +
                            "': write NAME:PERCENT:NAMESPACE,NAMESPACE, with :shared behind it or not");
  RoomPlan room{parts[0], percent_of(parts[1]), split(parts[2], ','), is_shared};
  if (!is_name(room.name))
    return invalid_argument("room '" + text + "': a name has lower-case letters, digits and hyphens");
  if (room.percent < 1 || room.percent > 99)
    return invalid_argument("room " + room.name + ": '" + parts[1] + "' is no percentage from 1 to 99");
  for (const std::string& name_space : room.namespaces)
    if (!is_name(name_space))
      return invalid_argument("room " + room.name + ": no namespace is called '" + name_space + "'");
  return room;
}

}  // namespace

std::string RoomPlan::tenant(const std::string& name_space) const {
  return is_shared ? kSharedMark + name : name_space;
}

Result<std::vector<RoomPlan>> parse_rooms(std::string_view text) {
  std::vector<RoomPlan> rooms{{"", 100, {}, false}};
  if (text.empty()) return rooms;
  std::set<std::string> names, namespaces;
  for (const std::string& each : split(text, ';')) {
    SLUICE_TRY(RoomPlan room, parse_room(each));
    if (!names.insert(room.name).second) return invalid_argument("room " + room.name + " is there twice");
    for (const std::string& name_space : room.namespaces)
      if (!namespaces.insert(name_space).second)
        return invalid_argument("namespace " + name_space + " has two rooms, " + room.name + " and an earlier one");
    rooms.front().percent -= room.percent;
    rooms.push_back(std::move(room));
  }
  if (rooms.size() > kRoomsMost + 1)
    return invalid_argument("there are " + std::to_string(rooms.size() - 1) + " rooms, at most " +
                            std::to_string(kRoomsMost) + " can be; give several namespaces one room");
  if (rooms.front().percent < 1)
    return invalid_argument("the rooms take " + std::to_string(100 - rooms.front().percent) +
                            " percent together; leave at least 1 to the other namespaces");
  return rooms;
}

}  // namespace sluice::node_cache
