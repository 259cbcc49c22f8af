#include "scheduler/allocate/node_ranking.h"

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

#include "scheduler/testing/properties.h"

namespace sluice::scheduler::testing {
namespace {

constexpr GroupSet kAll = ~GroupSet{0};

Suits any(int) { return Suits::kYes; }

Node priced_node(const std::string& name, std::int64_t millicores, double price_per_core = 0, int gpus = 0) {
  return {.name = name,
          .allocatable_millicores = millicores,
          .gpus = gpus,
          .price_per_hour = price_per_core * static_cast<double>(millicores) / 1000};
}

TEST_CASE("which of two nodes a new worker takes") {
  struct Row {
    const char* situation;
    Node takes, other;
  };
  const auto cordoned = [](Node node) {
    node.schedulable = false;
    return node;
  };
  const Row rows[] = {
      {"the emptier one", priced_node("z", 8000), priced_node("a", 4000)},
      {"the cheaper one, though it is fuller", priced_node("z", 1000, 0.1), priced_node("a", 64'000, 0.2)},
      {"the one without GPUs, though it is dear and full", priced_node("z", 1000, 9), priced_node("a", 64'000, 0, 8)},
      {"equals: by name", priced_node("a", 4000), priced_node("z", 4000)},
      {"the one that has the room", priced_node("z", 1000), priced_node("a", 999)},
      {"not the one that is being drained", priced_node("z", 1000, 9, 8), cordoned(priced_node("a", 64'000))},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    for (const auto& nodes : {std::vector{row.takes, row.other}, std::vector{row.other, row.takes}}) {
      NodeTable table(nodes, 1000);
      const int taken = NodeRanking(table).take(1000, kAll, any);
      REQUIRE(taken != kNowhere);
      CHECK(table.name(taken) == row.takes.name);
    }
  }
}

TEST_CASE("of nodes that are as good a worker takes one that has its data") {
  struct Row {
    const char* situation;
    Node near, other;
    const char* takes;
  };
  const Row rows[] = {
      {"though it is fuller", priced_node("z", 1000), priced_node("a", 64'000), "z"},
      {"not if it is dearer", priced_node("z", 64'000, 0.2), priced_node("a", 1000, 0.1), "a"},
      {"not if it has GPUs", priced_node("z", 64'000, 0, 8), priced_node("a", 1000), "a"},
      {"not if it has no room", priced_node("z", 999), priced_node("a", 1000), "a"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::vector<Node> nodes = {row.near, row.other};
    NodeTable table(nodes, 500);
    const std::vector<int> near = {table.index_of("z")};
    NodeRanking ranking(table);
    const int taken = ranking.take(1000, kAll, any, near);
    REQUIRE(taken != kNowhere);
    CHECK(table.name(taken) == row.takes);
    CHECK(ranking.take(1000, only(7), any, near) == kNowhere);
  }
}

TEST_CASE("a node that does not suit one worker is there for the next") {
  const std::vector<Node> nodes = {priced_node("a", 8000), priced_node("b", 4000)};
  NodeTable table(nodes, 1000);
  NodeRanking ranking(table);
  const auto not_a = [&](int index) { return table.name(index) != "a" ? Suits::kYes : Suits::kNo; };
  CHECK(ranking.take(1000, kAll, not_a) == table.index_of("b"));
  table[1].worker_millicores += 1000;
  CHECK(ranking.take(9000, kAll, any) == kNowhere);
  CHECK(ranking.take(1000, kAll, any) == table.index_of("a"));
}

TEST_CASE("the best node of the groups that take the worker, whatever better ones there are in others") {
  std::vector<Node> nodes = {priced_node("a", 8000), priced_node("b", 4000), priced_node("c", 2000)};
  nodes[1].group = 1;
  nodes[2].group = 100;  // shares its bit with all from the 64th on
  NodeTable table(nodes, 1000);
  NodeRanking ranking(table);
  CHECK(ranking.take(1000, only(1), any) == table.index_of("b"));
  CHECK(ranking.take(1000, only(1) | only(0), any) == table.index_of("a"));
  CHECK(ranking.take(1000, only(kGroups - 1), any) == table.index_of("c"));
  CHECK(ranking.take(1000, only(7), any) == kNowhere);
}

TEST_CASE("no node of a group is looked at any more once that group suits no worker of the call") {
  std::vector<Node> nodes = {priced_node("a", 8000), priced_node("b", 7000), priced_node("c", 2000)};
  nodes[2].group = 1;
  NodeTable table(nodes, 1000);
  NodeRanking ranking(table);
  std::vector<int> seen;
  const auto only_group_1 = [&](int index) {
    seen.push_back(index);
    return table.bit(index) == 1 ? Suits::kYes : Suits::kNoneOfItsGroup;
  };
  CHECK(ranking.take(1000, kAll, only_group_1) == table.index_of("c"));
  CHECK(seen == std::vector{table.index_of("a"), table.index_of("c")});
  CHECK(ranking.take(1000, kAll, any) == table.index_of("a"));
}

TEST_CASE("room that others took is noticed by itself, room that they gave back when it is said") {
  const std::vector<Node> nodes = {priced_node("a", 2000)};
  NodeTable table(nodes, 1000);
  NodeRanking ranking(table);
  table[0].worker_millicores = 2000;
  CHECK(ranking.take(1000, kAll, any) == kNowhere);
  table[0].worker_millicores = 1000;
  ranking.refresh(0);
  CHECK(ranking.take(1000, kAll, any) == 0);
}

TEST_CASE("room is taken and given back meanwhile: always the node that a look at all of them would find") {
  property("ranking", [](unsigned seed) {
    std::mt19937 random(seed);
    const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<Node> nodes;
    for (int i = 1 + upto(upto(3) > 0 ? 6 : 40); i > 0; --i)  // the larger heaps have several levels
      nodes.push_back(priced_node("n" + std::to_string(i), 500 * upto(12), 0.25 * upto(3), upto(3) == 0 ? 8 : 0));
    NodeTable table(nodes, 500);
    NodeRanking ranking(table);
    for (int step = 0; step < 60; ++step) {
      const int other = upto(table.size());
      NodeState& state = table[other];
      if (upto(4) == 0 && state.free_for_workers() >= 500) state.worker_millicores += 500;  // a worker that was there
      if (upto(4) == 0 && state.worker_millicores >= 500) {
        state.worker_millicores -= 500;
        ranking.refresh(other);
      }
      const std::int64_t size = 500 * (1 + upto(4));
      const int unsuitable = upto(2 * table.size());
      std::vector<int> near;
      for (int i = 0; i < table.size(); ++i)
        if (upto(3) == 0) near.push_back(i);
      const auto is_far = [&](int i) { return std::find(near.begin(), near.end(), i) == near.end(); };
      int best = kNowhere;
      const auto rank = [&](int i) {
        return std::make_tuple(table[i].node->gpus > 0, table[i].price_per_core_hour, is_far(i),
                               -table[i].free_for_workers(), i);
      };
      for (int i = 0; i < table.size(); ++i)
        if (i != unsuitable && table[i].free_for_workers() >= size && (best == kNowhere || rank(i) < rank(best)))
          best = i;
      const int taken = ranking.take(
          size, kAll, [&](int index) { return index != unsuitable ? Suits::kYes : Suits::kNo; }, near);
      RC_ASSERT(taken == best);
      if (taken != kNowhere) table[taken].worker_millicores += size;
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
