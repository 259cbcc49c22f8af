#include "operator/act/overwritten_children.h"

#include <algorithm>

#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using namespace control::testing;
using namespace std::chrono_literals;
using Harness = ReconcilerHarness;

constexpr const char* kApplyPool = "apply DataWorkerPool default/vision";

void overwrite_pool(Harness& harness) {
  harness.cluster.at(kube::kDataWorkerPools, "vision")["spec"]["template"]["spec"]["containers"][0]["image"] = "other";
}

long applies(const Harness& harness) { return std::count(harness.writes.begin(), harness.writes.end(), kApplyPool); }

TEST_CASE("a pool that a second operator writes, too, costs few writes, and people are told") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  for (int second = 0; second < 1800; ++second) {  // each write of the other is seen, and answered
    REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
    overwrite_pool(harness);
    harness.clock.advance(1s);
  }
  CHECK(applies(harness) <= 20);
  CHECK(applies(harness) >= 10);
  CHECK(std::count(harness.events.begin(), harness.events.end(), "ChildOverwritten") >= 1);
}

TEST_CASE("a pool that was overwritten once is restored at once, and looked at again if it has to wait") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  harness.clock.advance(1min);
  overwrite_pool(harness);
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(applies(harness) == 2);
  overwrite_pool(harness);
  const auto again = harness.jobs.reconcile(kVision, {});
  CHECK(applies(harness) == 2);
  REQUIRE((again.ok() && again->has_value()));
  CHECK(**again <= 2s);
  harness.clock.advance(2s);
  REQUIRE(harness.jobs.reconcile(kVision, {}).ok());
  CHECK(applies(harness) == 3);
  CHECK(std::count(harness.events.begin(), harness.events.end(), "ChildOverwritten") == 0);
}

TEST_CASE("another body is written at once, and after ten quiet minutes the waiting begins anew") {
  sluice::testing::ManualClock clock;
  OverwrittenChildren children(clock);
  kube::Action action{kube::Verb::kApply, kube::kDataWorkerPools, kVision, {{"spec", 1}}, "sluice-operator"};
  for (const auto want : {1s, 2s, 4s}) CHECK(children.note(action) == want);
  CHECK(children.wait(action) == 4s);
  action.body["spec"] = 2;
  CHECK(children.wait(action) == 0s);
  CHECK(children.note(action) == 1s);
  CHECK(children.note(action) == 2s);
  clock.advance(10min + 2s);
  CHECK(children.note(action) == 1s);
}

}  // namespace
}  // namespace sluice::act
