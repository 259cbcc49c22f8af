#include "scheduler/allocate/node_table.h"

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

TEST_CASE("the pool counts whole workers of schedulable nodes") {
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
      {"overcommitted is empty, not negative", {"n", 4000, 9000}, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::vector<Node> nodes = {row.node};
    CHECK(NodeTable(nodes, 1000).pool_millicores(0) == row.want);
  }
}

TEST_CASE("which groups are open to a job: those that it does not name as closed") {
  const std::vector<Node> nodes = {{.name = "a", .group = 0}, {.name = "b", .group = 1}, {.name = "c", .group = 70}};
  const NodeTable table(nodes, 1000);
  const GroupSet all = ~GroupSet{0};
  Job job;
  CHECK(table.groups_open_to(job) == all);
  job.closed_groups = {false, true};
  CHECK(table.groups_open_to(job) == (all & ~only(1)));
  // The 64th bit is open while any of its groups may be.
  job.closed_groups = std::vector<bool>(70, true);
  CHECK(table.groups_open_to(job) == only(kGroups - 1));
  job.closed_groups.push_back(true);
  CHECK(table.groups_open_to(job) == 0);
}

TEST_CASE("a pool for each group") {
  const std::vector<Node> nodes = {{.name = "a", .allocatable_millicores = 2000},
                                   {.name = "b", .allocatable_millicores = 3000, .group = 1},
                                   {.name = "c", .allocatable_millicores = 4000, .schedulable = false, .group = 2}};
  NodeTable table(nodes, 1000);
  CHECK(table.pool_millicores(0) == 2000);
  CHECK(table.pool_millicores(1) == 3000);
  CHECK(table.usable_groups() == (only(0) | only(1)));
  table.give_local(1, 1500);
  CHECK(table.pool_millicores(1) == 1000);
  CHECK(table.pool_millicores(0) == 2000);
}

TEST_CASE("what feeders take leaves the pool in whole workers") {
  const std::vector<Node> nodes = {{"n", 4000}};
  NodeTable table(nodes, 1000);
  table.give_local(0, 500);
  CHECK(table.pool_millicores(0) == 3000);
  table.give_local(0, 500);
  CHECK(table.pool_millicores(0) == 3000);
  CHECK(table[0].free_for_local() == 3000);
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

}  // namespace
}  // namespace sluice::scheduler
