#include "worker-image/cache/room_plan.h"

#include "src/base/testing/catch.h"

namespace sluice::node_cache {
namespace {

TEST_CASE("rooms have what they name, and all other namespaces what is left") {
  const auto alone = parse_rooms("");
  REQUIRE(alone.ok());
  REQUIRE(alone->size() == 1);
  CHECK(alone->front().percent == 100);
  CHECK(alone->front().part_of(12'345) == 12'345);
  CHECK(alone->front().tenant("team-a") == "team-a");

  const auto rooms = parse_rooms("vision:40:team-a,team-b:shared;audio:1:team-c");
  REQUIRE(rooms.ok());
  REQUIRE(rooms->size() == 3);
  CHECK(rooms->at(0).name.empty());
  CHECK(rooms->at(0).percent == 59);
  CHECK(rooms->at(1).namespaces == std::vector<std::string>{"team-a", "team-b"});
  CHECK(rooms->at(1).part_of(1010) == 404);
  CHECK(rooms->at(1).tenant("team-a") == "+vision");
  CHECK_FALSE(rooms->at(2).is_shared);
  CHECK(rooms->at(2).tenant("team-c") == "team-c");
}

TEST_CASE("rooms that cannot be are refused with the room and the way out") {
  struct Row {
    const char* text;
    const char* want;
  };
  const Row rows[] = {
      {"vision", "room 'vision': write NAME:PERCENT:NAMESPACE,NAMESPACE"},
      {"vision:40:team-a:open", "room 'vision:40:team-a:open': write"},
      {"vision:40:team-a;", "room '': write"},
      {"Vision:40:team-a", "room 'Vision:40:team-a': a name has lower-case letters"},
      {":40:team-a", "a name has lower-case letters"},
      {"vision:0:team-a", "room vision: '0' is no percentage from 1 to 99"},
      {"vision:100:team-a", "'100' is no percentage"},
      {"vision:4.5:team-a", "'4.5' is no percentage"},
      {"vision:99999999999:team-a", "is no percentage"},
      {"vision:40:", "room vision: no namespace is called ''"},
      {"vision:40:team-a,+vision", "no namespace is called '+vision'"},
      {"vision:40:team-a,team-a", "namespace team-a has two rooms"},
      {"vision:40:team-a;audio:10:team-a", "namespace team-a has two rooms, audio and an earlier one"},
      {"vision:40:team-a;vision:10:team-b", "room vision is there twice"},
      {"vision:60:team-a;audio:40:team-b", "the rooms take 100 percent together; leave at least 1"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto rooms = parse_rooms(row.text);
    REQUIRE_FALSE(rooms.ok());
    CHECK_THAT(rooms.error().message(), Catch::Contains(row.want));
  }
  std::string many;
  for (std::size_t i = 0; i <= kRoomsMost; ++i)
    many += (many.empty() ? "r" : ";r") + std::to_string(i) + ":1:n" + std::to_string(i);
  CHECK_THAT(parse_rooms(many).error().message(), Catch::Contains("at most 16"));
}

}  // namespace
}  // namespace sluice::node_cache
