// The simulated cluster's sums, the queue of events, and random numbers that depend on nothing but their key.
#include "scheduler/simulator/world/cluster.h"

#include <set>

#include "scheduler/simulator/world/event_queue.h"
#include "scheduler/simulator/world/random.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

TEST_CASE("A cluster's sums count every node of every group") {
  Cluster cluster;
  cluster.groups = {{"a", 2, 8, 24, 0, false}, {"b", 1, 4, 64, 0, false}, {"c", 3, 0, 32, 0, true}};
  CHECK(cluster.gpus() == 20);
  CHECK(cluster.cores() == 48 + 64 + 96);
  CHECK(cluster.gpu_host_cores() == 48 + 64);
  CHECK(cluster.most_gpus_per_node() == 8);
}

TEST_CASE("Events come by time, and in the order in which they were said where times are equal") {
  EventQueue queue;
  std::uint64_t state = 5;
  for (int i = 0; i < 500; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    queue.push({static_cast<double>((state >> 33) % 20), EventKind::kWorkers, i});
  }
  double time = -1;
  int last = -1, count = 0;
  while (!queue.empty()) {
    const Event event = queue.pop();
    REQUIRE(event.at_seconds >= time);
    if (event.at_seconds == time) REQUIRE(event.object > last);
    time = event.at_seconds;
    last = event.object;
    ++count;
  }
  CHECK(count == 500);
}

TEST_CASE("A draw depends on every part of its key, and on no draw before it") {
  const Key key{1, Draw::kNoise, 2, 3};
  const double first = uniform(key);
  std::set<double> draws = {first,
                            uniform({2, Draw::kNoise, 2, 3}),
                            uniform({1, Draw::kCost, 2, 3}),
                            uniform({1, Draw::kNoise, 3, 3}),
                            uniform({1, Draw::kNoise, 2, 4}),
                            uniform({1, Draw::kNoise, 3, 2})};
  CHECK(draws.size() == 6);
  CHECK(uniform(key) == first);
}

TEST_CASE("Draws stay within their ranges, neighbours are unlike, and no seed is special") {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    double before = uniform({seed, Draw::kGpus, 0, 0}), product = 0;
    constexpr int kDraws = 5000;
    for (std::uint64_t i = 1; i <= kDraws; ++i) {
      const double draw = uniform({seed, Draw::kGpus, i, 0});
      REQUIRE(draw >= 0);
      REQUIRE(draw < 1);
      REQUIRE(exponential({seed, Draw::kArrival, i, 0}) >= 0);
      product += (draw - 0.5) * (before - 0.5);
      before = draw;
    }
    CHECK(product / kDraws * 12 == Approx(0).margin(0.06));  // the correlation of neighbours
  }
}

}  // namespace
}  // namespace sluice::simulator
