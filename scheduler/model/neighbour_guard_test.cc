#include "scheduler/model/neighbour_guard.h"

#include <utility>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

const JobId kBig{"default", "big"}, kSmall{"default", "small"};

// A trainer on the nodes n1 and n2; the feeders of two other jobs are on n1, those of one of them also on n2.
// Computing time scatters by 2 %, alternately.
struct WatchedHosts {
  NeighbourGuard guard;
  double now_seconds = 1000;
  int windows = 0;
  double big_cores = 0.5;     // on n1
  double small_cores = 0.25;  // on n1
  double second_cores = 1;    // of big, on n2
  double other_cores = 2;
  double samples_per_batch = 64;
  double noise = 0.02;

  NeighbourWindow window(double compute_seconds) {
    const double factor = windows++ % 2 == 0 ? 1 + noise : 1 - noise;
    return {now_seconds += 15,
            15,
            compute_seconds * factor,
            samples_per_batch,
            {{"n1", {{kBig, big_cores}, {kSmall, small_cores}}, other_cores}, {"n2", {{kBig, second_cores}}, 1}}};
  }
  void see(int count, double compute_seconds) {
    for (int i = 0; i < count; ++i) guard.take(window(compute_seconds), Config{});
  }
  bool holds() const { return guard.holds(now_seconds, Config{}); }
};

TEST_CASE("feeders that slow another job's trainer down go back to the CPU that they used before") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  watch.small_cores = 0.5;
  watch.see(9, 0.120);
  CHECK_FALSE(watch.holds());  // too early to tell
  watch.see(1, 0.120);
  REQUIRE(watch.holds());
  CHECK(watch.guard.cap->rise == Approx(0.2).epsilon(0.05));
  CHECK(watch.guard.cap->most_grown == kBig);
  CHECK(watch.guard.cap->at_node == "n1");
  // Nothing grew on the other node, and nothing is capped there.
  REQUIRE(watch.guard.cap->load.size() == 1);
  CHECK(watch.guard.cap->load[0].node == "n1");
  CHECK(watch.guard.cap->load[0].cores_of(kBig) == 0.5);
  CHECK(watch.guard.cap->load[0].cores_of(kSmall) == 0.25);
  CHECK(watch.guard.cap->load[0].cores_of({"default", "later"}) == 0);
}

TEST_CASE("the trainer of a gang suffers on one of its nodes") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.second_cores = 6;
  watch.see(10, 0.120);
  REQUIRE(watch.holds());
  REQUIRE(watch.guard.cap->load.size() == 1);
  CHECK(watch.guard.cap->load[0].node == "n2");
  CHECK(watch.guard.cap->load[0].cores_of(kBig) == 1);
}

TEST_CASE("what neighbours are not blamed for") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  const auto grow = [&] { watch.big_cores = 8; };
  SECTION("computing time as before") { grow(), watch.see(60, 0.100); }
  SECTION("a rise below a twentieth") { grow(), watch.see(60, 0.104); }
  SECTION("less computing time") { grow(), watch.see(60, 0.050); }
  SECTION("a rise while their feeders use what they used") { watch.see(60, 0.200); }
  SECTION("a rise a while before their feeders grew") { watch.see(60, 0.200), grow(), watch.see(60, 0.200); }
  SECTION("larger batches") { grow(), watch.samples_per_batch = 128, watch.see(60, 0.200); }
  SECTION("its own feeders or data workers that came at the same time") {
    grow(), watch.other_cores = 6, watch.see(60, 0.200);
  }
  SECTION("noise of 30 %") { watch.noise = 0.3, grow(), watch.see(60, 0.110); }
  SECTION("feeders that have gone, and trainers that came meanwhile") {
    watch.big_cores = watch.second_cores = 0, watch.see(10, 0.150);
    grow(), watch.see(60, 0.150);
  }
  CHECK_FALSE(watch.guard.cap.has_value());
}

TEST_CASE("feeders that had grown before the trainer was known are not blamed; those that grow later are") {
  WatchedHosts watch;
  watch.see(5, 0.100);
  watch.big_cores = 4;
  watch.see(30, 0.120);
  CHECK_FALSE(watch.guard.cap.has_value());
  watch.big_cores = 8;
  watch.see(10, 0.150);
  REQUIRE(watch.holds());
  CHECK(watch.guard.cap->load[0].cores_of(kBig) == 4);
}

TEST_CASE("a growth of neighbours that did no harm is what their next one is compared with") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 4;
  watch.see(20, 0.103);
  watch.big_cores = 16;
  watch.see(10, 0.120);
  REQUIRE(watch.holds());
  CHECK(watch.guard.cap->load[0].cores_of(kBig) == 4);
}

TEST_CASE("feeders that had grown before the trainer came have shrunk since: the trainer has a reference") {
  WatchedHosts watch;
  watch.big_cores = 8;
  watch.see(12, 0.120);
  watch.big_cores = 1;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  watch.see(10, 0.120);
  REQUIRE(watch.holds());
  CHECK(watch.guard.cap->load[0].cores_of(kBig) == 1);
}

TEST_CASE("its own feeders grew at the same time: they give CPU back first, then neighbours are judged") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  watch.other_cores = 6;
  watch.see(8, 0.140);
  watch.other_cores = 2;
  watch.see(9, 0.120);
  CHECK_FALSE(watch.holds());
  watch.see(1, 0.120);
  CHECK(watch.holds());
}

TEST_CASE("other load that stays is part of the next reference") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.other_cores = 6;
  watch.see(40, 0.130);
  watch.big_cores = 8;
  watch.see(10, 0.160);
  CHECK(watch.holds());
}

TEST_CASE("after ten minutes they may try again, and are judged by the windows without them") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  watch.see(10, 0.120);
  REQUIRE(watch.holds());
  watch.see(3, 0.120);  // until they have shrunk
  watch.big_cores = 0.5;
  watch.see(36, 0.105);
  CHECK(watch.holds());
  watch.see(1, 0.105);
  CHECK_FALSE(watch.holds());
  CHECK_FALSE(watch.guard.cap.has_value());
  CHECK(watch.guard.reference.mean == Approx(0.105).epsilon(0.01));
  watch.big_cores = 8;
  SECTION("no harm this time") {
    watch.see(30, 0.108);
    CHECK_FALSE(watch.guard.cap.has_value());
  }
  SECTION("the same as before") {
    watch.see(10, 0.125);
    REQUIRE(watch.holds());
    CHECK(watch.guard.cap->load[0].cores_of(kBig) == 0.5);
  }
}

TEST_CASE("what changes while a cap is in force neither ends nor prolongs it") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  watch.see(10, 0.120);
  REQUIRE(watch.holds());
  const NeighbourCap before = *watch.guard.cap;
  SECTION("data workers take the place of the feeders") { watch.big_cores = 0.5, watch.other_cores = 9; }
  SECTION("its neighbours have gone") { watch.big_cores = watch.small_cores = watch.second_cores = 0; }
  SECTION("feeders have not shrunk yet") {}
  watch.see(39, 0.120);
  REQUIRE(watch.holds());
  CHECK(watch.guard.cap == before);
}

TEST_CASE("a window that was seen before, in part, changes nothing") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  const NeighbourGuard before = watch.guard;
  NeighbourWindow again = watch.window(0.500);
  for (const double later_seconds : {0.0, 5.0, 13.0}) {
    again.end_seconds = before.through_seconds + later_seconds;
    watch.guard.take(again, Config{});
    CHECK(watch.guard == before);
  }
  again.end_seconds = before.through_seconds + 14;
  watch.guard.take(again, Config{});
  CHECK(watch.guard != before);
}

TEST_CASE("a trainer that moved to other nodes has no reference there") {
  WatchedHosts watch;
  watch.see(12, 0.100);
  watch.big_cores = 8;
  NeighbourWindow moved = watch.window(0.120);
  moved.load.pop_back();
  watch.guard.take(moved, Config{});
  CHECK(watch.guard.reference.count == 1);
  CHECK(watch.guard.load == moved.load);
}

}  // namespace
}  // namespace sluice::scheduler
