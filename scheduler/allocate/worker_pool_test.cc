#include "scheduler/allocate/worker_pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scheduler/testing/properties.h"

namespace sluice::scheduler::testing {
namespace {

std::vector<Node> nodes_of(const std::vector<std::int64_t>& cores) {
  std::vector<Node> nodes;
  for (int group = 0; group < std::ssize(cores); ++group)
    nodes.push_back(
        {.name = "n" + std::to_string(group), .allocatable_millicores = 1000 * cores[group], .group = group});
  return nodes;
}

TEST_CASE("with one group the pool is a sum") {
  const std::vector<Node> nodes = nodes_of({5});
  const NodeTable table(nodes, 1000);
  WorkerPool pool(table);
  CHECK(pool.available(~GroupSet{0}, 9000) == 5000);
  pool.take(~GroupSet{0}, 3000);
  CHECK(pool.available(~GroupSet{0}, 1000) == 1000);
  CHECK(pool.spare(~GroupSet{0}) == 2000);
  pool.give_back(~GroupSet{0}, 1000);
  CHECK(pool.available(~GroupSet{0}, 9000) == 3000);
}

TEST_CASE("what may go elsewhere makes room, over as many steps as it takes") {
  const std::vector<Node> nodes = nodes_of({2, 2, 2});
  const NodeTable table(nodes, 1000);
  WorkerPool pool(table);
  pool.take(only(0) | only(1), 2000);
  pool.take(only(1) | only(2), 2000);
  CHECK(pool.available(only(0), 9000) == 2000);
  pool.take(only(0), 2000);
  CHECK(pool.available(only(0), 1000) == 0);
  CHECK(pool.available(only(1) | only(2), 1000) == 0);
  pool.give_back(only(0), 1000);
  CHECK(pool.available(only(2), 9000) == 1000);
}

TEST_CASE("a job that may go nowhere gets nothing, and one that holds more than there is leaves nothing") {
  const std::vector<Node> nodes = nodes_of({2, 3});
  const NodeTable table(nodes, 1000);
  WorkerPool pool(table);
  CHECK(pool.available(0, 1000) == 0);
  CHECK(pool.available(only(5), 1000) == 0);
  pool.take(only(0), 4000);
  CHECK(pool.spare(only(0)) == -2000);
  CHECK(pool.available(only(0) | only(1), 9000) == 3000);
  pool.give_back(only(0), 3000);
  CHECK(pool.available(only(0), 9000) == 1000);
}

TEST_CASE("a worker that may choose moves to a group only if the others still fit, and settles there for good") {
  const std::vector<Node> nodes = nodes_of({2, 2});
  const NodeTable table(nodes, 1000);
  WorkerPool pool(table);
  const GroupSet both = only(0) | only(1);
  pool.take(both, 2000);
  CHECK(pool.available(only(0), 1000) == 1000);
  pool.take(only(0), 1000);
  CHECK(pool.move_to(both, 0, 1000));
  pool.settle(both, 0, 1000);
  CHECK_FALSE(pool.move_to(both, 0, 1000));
  CHECK(pool.available(both, 9000) == 1000);  // what did not fit is booked as before
  CHECK(pool.move_to(both, 1, 1000));
  pool.settle(both, 1, 1000);
  pool.give_back(both, 9000);  // nothing: both have settled
  CHECK(pool.available(both, 9000) == 1000);
  pool.unsettle(0, 1000);
  CHECK(pool.available(only(0), 9000) == 1000);
}

TEST_CASE("a worker that settles where nothing was booked for it frees what was booked elsewhere") {
  const std::vector<Node> nodes = nodes_of({2, 2});
  const NodeTable table(nodes, 1000);
  WorkerPool pool(table);
  pool.settle(only(0), 1, 1000);  // on a node of another group
  CHECK(pool.available(only(0) | only(1), 9000) == 3000);
  pool.take(only(0), 2000);
  pool.settle(only(0), 1, 1000);
  CHECK(pool.available(only(0), 9000) == 1000);
  CHECK(pool.available(only(1), 9000) == 0);
}

// By Hall: for every set of groups, those who can go nowhere else fit into it.
bool fits(const std::vector<std::int64_t>& cores, const std::map<GroupSet, std::int64_t>& held) {
  for (GroupSet set = 0; set < (GroupSet{1} << cores.size()); ++set) {
    std::int64_t room = 0;
    for (int group = 0; group < std::ssize(cores); ++group) room += (set & only(group)) != 0 ? 1000 * cores[group] : 0;
    for (const auto& [groups, millicores] : held)
      if ((groups & ~set) == 0) room -= millicores;
    if (room < 0) return false;
  }
  return true;
}

TEST_CASE("a request is available exactly when all workers can be divided over the groups") {
  property("pool", [](unsigned seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<std::int64_t> cores;
    for (int i = 1 + upto(5); i > 0; --i) cores.push_back(upto(6));
    const std::vector<Node> nodes = nodes_of(cores);
    const NodeTable table(nodes, 1000);
    WorkerPool pool(table);
    std::map<GroupSet, std::int64_t> held, settled;
    const auto all_fit = [&] {
      std::map<GroupSet, std::int64_t> all = held;
      for (const auto& [group, millicores] : settled) all[group] += millicores;
      return fits(cores, all);
    };
    for (int step = 0; step < 40; ++step) {
      const GroupSet open = 1 + random() % ((1u << cores.size()) - 1);
      const GroupSet groups = open & table.usable_groups();
      if (upto(3) == 0 && held[groups] > 0) {
        pool.give_back(open, 1000);
        held[groups] -= 1000;
        continue;
      }
      const int bit = std::countr_zero(open);
      if (upto(3) == 0) {
        const std::int64_t booked = std::min<std::int64_t>(held[groups], 1000);
        held[groups] -= booked, settled[only(bit)] += 1000;
        const bool may_move = all_fit();
        RC_ASSERT(pool.move_to(open, bit, 1000) == may_move);
        if (may_move)
          pool.settle(open, bit, 1000);
        else
          held[groups] += booked, settled[only(bit)] -= 1000;
        continue;
      }
      held[groups] += 1000;
      const bool there_is_room = all_fit();
      RC_ASSERT((pool.available(open, 1000) == 1000) == there_is_room);
      if (there_is_room)
        pool.take(open, 1000);
      else
        held[groups] -= 1000;
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
