// Which daemon of a cluster has a record.
#include "src/cache/homes.h"

#include <map>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

std::string address_of(int member) { return "10.0.0." + std::to_string(member) + ":7473"; }

std::set<std::string> members(int count) {
  std::set<std::string> all;
  for (int member = 0; member < count; ++member) all.insert(address_of(member));
  return all;
}

// Of all places, as the first member sees it.
std::vector<std::string> homes_of(const std::set<std::string>& all, const std::string& own, int places) {
  const Homes homes(own, all);
  std::vector<std::string> found;
  for (int place = 0; place < places; ++place) {
    const std::string* const home = homes.elsewhere(static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15);
    found.push_back(home == nullptr ? own : *home);
  }
  return found;
}

TEST_CASE("all members agree on each record's home, and have equal parts") {
  constexpr int kPlaces = 8000;
  for (const int count : {1, 2, 4, 16}) {
    INFO(count);
    const auto all = members(count);
    const auto homes = homes_of(all, address_of(0), kPlaces);
    for (const std::string& own : all) CHECK(homes_of(all, own, kPlaces) == homes);
    std::map<std::string, int> parts;
    for (const std::string& home : homes) ++parts[home];
    CHECK(static_cast<int>(parts.size()) == count);
    for (const auto& [home, places] : parts) CHECK(places == Approx(kPlaces / count).epsilon(.2));
  }
}

TEST_CASE("a member that comes or goes moves its own part of the records, and no others") {
  constexpr int kPlaces = 8000;
  const auto before = homes_of(members(4), address_of(0), kPlaces);
  const auto with_another = homes_of(members(5), address_of(0), kPlaces);
  int moved = 0;
  for (int place = 0; place < kPlaces; ++place) {
    if (with_another[place] == before[place]) continue;
    ++moved;
    CHECK(with_another[place] == address_of(4));
  }
  CHECK(moved == Approx(kPlaces / 5).epsilon(.1));
}

TEST_CASE("alone, or not found itself, a daemon is a member all the same") {
  const Homes alone("own:1", {});
  CHECK(alone.others().empty());
  for (std::uint64_t place = 0; place < 100; ++place) CHECK(alone.elsewhere(place) == nullptr);
  const Homes early("own:1", {"other:1"});
  CHECK(early.others() == std::vector<std::string>{"other:1"});
  int own = 0;
  for (std::uint64_t place = 0; place < 1000; ++place) own += early.elsewhere(place) == nullptr ? 1 : 0;
  CHECK(own == Approx(500).epsilon(.2));
}

TEST_CASE("of too many members those with the first addresses are homes, for all of them") {
  std::set<std::string> all;
  for (int member = 1000; member < 1000 + 2 * static_cast<int>(Homes::kMembersMost); ++member)
    all.insert(address_of(member));
  const std::string last = *all.rbegin();
  const Homes beyond(last, all), within(*all.begin(), all);
  CHECK(beyond.others().size() == Homes::kMembersMost);
  CHECK(within.others().size() == Homes::kMembersMost - 1);
  for (std::uint64_t place = 0; place < 100; ++place) REQUIRE(beyond.elsewhere(place) != nullptr);
}

}  // namespace
}  // namespace sluice::cache
