#include "scheduler/policies/pending_pods.h"

#include <utility>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

const JobId kA{"default", "a"};
const JobId kB{"default", "b"};

using Batches = std::vector<std::pair<double, int>>;

Batches of(const PendingPods& pending, const JobId& job) {
  Batches batches;
  for (const PendingPods::Batch& batch : pending.of(job)) batches.emplace_back(batch.asked_at_seconds, batch.count);
  return batches;
}

TEST_CASE("pods wait from the moment they were asked for; the youngest are given up first") {
  PendingPods pending;
  struct Row {
    const char* situation;
    double now;
    int missing;
    Batches want;
  };
  const Row rows[] = {
      {"nothing missing", 0, 0, {}},
      {"three asked for", 10, 3, {{10, 3}}},
      {"still three", 20, 3, {{10, 3}}},
      {"two more", 30, 5, {{10, 3}, {30, 2}}},
      {"one given up", 40, 4, {{10, 3}, {30, 1}}},
      {"two more given up", 50, 2, {{10, 2}}},
      {"another", 60, 3, {{10, 2}, {60, 1}}},
      {"all given up", 70, 0, {}},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    pending.set_missing(kA, row.missing, row.now);
    CHECK(of(pending, kA) == row.want);
  }
}

TEST_CASE("jobs that are gone are forgotten") {
  PendingPods pending;
  pending.set_missing(kA, 3, 10);
  pending.set_missing(kB, 3, 10);
  pending.keep_only({kB});
  CHECK(of(pending, kA).empty());
  CHECK(of(pending, kB) == Batches{{10, 3}});
}

TEST_CASE("the oldest is placed first, and jobs do not mix") {
  PendingPods pending;
  pending.set_missing(kA, 1, 10);
  pending.set_missing(kA, 3, 20);
  pending.set_missing(kB, 1, 15);
  pending.placed(kA);
  CHECK(of(pending, kA) == Batches{{20, 2}});
  CHECK(of(pending, kB) == Batches{{15, 1}});
  pending.placed(kB);
  CHECK(of(pending, kB).empty());
}

}  // namespace
}  // namespace sluice::scheduler
