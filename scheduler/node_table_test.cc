#include "scheduler/node_table.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

TEST_CASE("nodes are found by name, whatever their order; others are nowhere") {
  const std::vector<Node> nodes = {{"n2", 2000}, {"n1", 1000}};
  const NodeTable table(nodes, 1000);
  CHECK(table.name(0) == "n1");
  CHECK(table.index_of("n2") == 1);
  CHECK(table.index_of("n3") == kNowhere);
}

TEST_CASE("the pool counts whole workers of schedulable, unguarded room") {
  struct Row {
    const char* situation;
    Node node;
    std::int64_t want;
  };
  const Row rows[] = {
      {"all of it", {"n", 4000}, 4000},
      {"less what others request", {"n", 4000, 1500}, 2000},
      {"rests are no use", {"n", 2900, 1000}, 1000},
      {"nothing on a cordoned node", {"n", 4000, 0, false}, 0},
      {"not the guarded part", {.name = "n", .allocatable_millicores = 4000, .guarded_millicores = 1000}, 3000},
      {"overcommitted is empty, not negative", {"n", 4000, 9000}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::vector<Node> nodes = {row.node};
    CHECK(NodeTable(nodes, 1000).pool_millicores() == row.want);
  }
}

TEST_CASE("what feeders take leaves the pool in whole workers") {
  const std::vector<Node> nodes = {{"n", 4000}};
  NodeTable table(nodes, 1000);
  table.give_local(0, 500);
  CHECK(table.pool_millicores() == 3000);
  table.give_local(0, 500);
  CHECK(table.pool_millicores() == 3000);
  CHECK(table[0].free_for_local() == 3000);
  table.reserve(0, 2500);
  CHECK(table.pool_millicores() == 0);
  CHECK(table[0].free_for_workers() == 500);
}

TEST_CASE("feeders get what the pool can spare, and the rest of a node that is no use to workers in any case") {
  const std::vector<Node> nodes = {{"n", 4700}};
  const NodeTable table(nodes, 1000);
  CHECK(table.local_within(0, 3000, 9000) == 3000);
  CHECK(table.local_within(0, 3000, 0) == 700);
  CHECK(table.local_within(0, 3000, 1000) == 1700);
  CHECK(table.local_within(0, 3000, 1999) == 1700);
  CHECK(table.local_within(0, 9000, 9000) == 4700);
}

TEST_CASE("a trainer that starts does not use up the room that is guarded for the next one") {
  const std::vector<Node> nodes = {{.name = "n", .allocatable_millicores = 8000, .guarded_millicores = 3000}};
  NodeTable table(nodes, 1000);
  table.reserve(0, 2000);
  CHECK(table.pool_millicores() == 3000);
  CHECK(table[0].free_for_workers() == 3000);
  CHECK(table[0].free_for_local() == 6000);
}

TEST_CASE("guarded room is for feeders only") {
  const std::vector<Node> nodes = {{.name = "n", .allocatable_millicores = 4000, .guarded_millicores = 3000}};
  NodeTable table(nodes, 1000);
  CHECK(table[0].free_for_workers() == 1000);
  CHECK(table[0].free_for_local() == 4000);
  CHECK(table.local_within(0, 3000, 0) == 3000);
  table.give_local(0, 3500);
  CHECK(table[0].free_for_workers() == 500);
}

}  // namespace
}  // namespace sluice::scheduler
