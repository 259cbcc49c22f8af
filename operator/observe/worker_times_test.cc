#include "operator/observe/worker_times.h"

#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

PodView worker(const char* uid, double created_seconds, double ready_since_seconds) {
  PodView view;
  view.uid = uid;
  view.is_worker = true;
  view.worker.ready = ready_since_seconds != 0;
  view.worker.created_at_seconds = created_seconds;
  view.worker.ready_since_seconds = view.said_ready_since_seconds = ready_since_seconds;
  return view;
}

// What a worker's times become that is seen as made, unready, in a round at 1000 and as ready in the one at 1005, when
// the others' clocks are ahead of ours by so much. In truth it was made at 998 and became ready at 1003.
PodView seen_with(double skew_seconds) {
  WorkerTimes times;
  times.begin_round(995);
  times.begin_round(1000);
  PodView unready = worker("a", 998 + skew_seconds, 0);
  times.settle(unready, nullptr);
  times.begin_round(1005);
  PodView ready = worker("a", 998 + skew_seconds, 1003 + skew_seconds);
  times.settle(ready, &unready);
  return ready;
}

TEST_CASE("what happens between two rounds happened between them, however wrong a clock is") {
  struct Row {
    double skew_seconds;
    double want_created;
    double want_ready;
  };
  const Row row = GENERATE(Row{0, 998, 1003}, Row{1, 999, 1004}, Row{600, 1000, 1005}, Row{-600, 995, 1000},
                           Row{1e9, 1000, 1005}, Row{-1e9, 995, 1000});
  INFO(row.skew_seconds);
  const PodView seen = seen_with(row.skew_seconds);
  CHECK(seen.worker.created_at_seconds == row.want_created);
  CHECK(seen.worker.ready_since_seconds == row.want_ready);
}

TEST_CASE("in the first round a worker is as old as it says, and none is of the future") {
  WorkerTimes times;
  times.begin_round(1000);
  PodView old = worker("a", 100, 200);
  PodView young = worker("b", 1600, 1601);
  times.settle(old, nullptr);
  times.settle(young, nullptr);
  CHECK(old.worker.created_at_seconds == 100);
  CHECK(old.worker.ready_since_seconds == 200);
  CHECK(young.worker.created_at_seconds == 1000);
  CHECK(young.worker.ready_since_seconds == 1000);
}

TEST_CASE("a worker keeps its times while it says the same; readiness that comes back, and a namesake, begin anew") {
  WorkerTimes times;
  times.begin_round(1000);
  PodView first = worker("a", 1590, 1600);
  times.settle(first, nullptr);
  times.begin_round(1100);
  PodView same = worker("a", 1590, 1600);
  times.settle(same, &first);
  CHECK(same.worker.created_at_seconds == 1000);
  CHECK(same.worker.ready_since_seconds == 1000);
  times.begin_round(1105);
  PodView again = worker("a", 1590, 1702);
  times.settle(again, &same);
  CHECK(again.worker.created_at_seconds == 1000);
  CHECK(again.worker.ready_since_seconds == 1105);
  PodView namesake = worker("b", 1703, 1703);
  times.settle(namesake, &same);
  CHECK(namesake.worker.created_at_seconds == 1105);
}

TEST_CASE("when our clock is set back, no time stays in the future") {
  WorkerTimes times;
  times.begin_round(1000);
  PodView view = worker("a", 900, 950);
  times.settle(view, nullptr);
  times.begin_round(400);
  CHECK(times.was_set_back());
  times.clip(view);
  CHECK(view.worker.created_at_seconds == 400);
  CHECK(view.worker.ready_since_seconds == 400);
  times.begin_round(405);
  CHECK_FALSE(times.was_set_back());
}

}  // namespace
}  // namespace sluice::observe
