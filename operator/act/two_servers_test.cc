// Two releases of the API server behind one address, while a control plane is upgraded: one of them does not know a
// field that a template has, and refuses what the other one takes.
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using namespace control::testing;
using nlohmann::json;
using Harness = ReconcilerHarness;

// The requests for `kind` go to both servers in turn, or as `old_ones` of ten do.
void upgrade(Harness& harness, std::string_view kind, int old_ones, int& tries) {
  harness.fail = [&tries, kind, old_ones](const kube::Action& action) -> Result<void> {
    if (action.resource.kind != kind || action.verb == kube::Verb::kDelete) return {};
    const bool is_old = (7 * tries++) % 10 < old_ones;
    if (!is_old) return {};
    return invalid_argument("strict decoding error: unknown field \"spec.template.spec.newest\"");
  };
}

// As the controllers do it: after what the step asks for, or a minute.
template <class Reconciler>
void run_for(std::chrono::minutes time, Harness& harness, Reconciler& reconciler) {
  const auto end = harness.clock.now() + time;
  while (harness.clock.now() < end) {
    const auto again = reconciler.reconcile(kVision, {});
    std::chrono::milliseconds pause = std::chrono::minutes(1);
    if (!again.ok()) pause = std::chrono::seconds(5);
    if constexpr (requires { again->has_value(); })
      if (again.ok() && again->has_value()) pause = std::min(pause, std::chrono::milliseconds(**again));
    harness.clock.advance(std::max(pause, std::chrono::milliseconds(1000)));
  }
}

TEST_CASE("a trainer that one of two servers refuses is made by the other, after few tries") {
  const int old_ones = GENERATE(1, 5, 8);
  CAPTURE(old_ones);
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  int tries = 0;
  upgrade(harness, "Job", old_ones, tries);
  run_for(std::chrono::minutes(15), harness, harness.jobs);
  CHECK(harness.cluster.get(kube::kJobs, "vision") != nullptr);
  CHECK(tries <= 10);
  const auto job = harness.cluster.get(kube::kTrainingJobs, "vision");
  const auto ready = api::find_condition(api::Object(*job).conditions(), "Ready");
  CHECK(ready.reason != api::kSpecRefused);
}

TEST_CASE("workers that one of two servers refuses are made by the other, and no storm is") {
  const int old_ones = GENERATE(1, 5, 8);
  CAPTURE(old_ones);
  Harness harness;
  harness.cluster.put(kube::kDataWorkerPools, pool(8));
  int tries = 0;
  upgrade(harness, "Pod", old_ones, tries);
  run_for(std::chrono::minutes(30), harness, harness.pools);
  CHECK(harness.cluster.all(kube::kPods).size() >= (old_ones <= 5 ? 8 : 1));
  CHECK(tries <= 20);
  harness.fail = [](const kube::Action&) { return Result<void>(); };  // the upgrade is over
  run_for(std::chrono::minutes(6), harness, harness.pools);
  CHECK(harness.cluster.all(kube::kPods).size() == 8);
}

}  // namespace
}  // namespace sluice::act
