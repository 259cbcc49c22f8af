#include "operator/act/refused_children.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using Harness = control::testing::ReconcilerHarness;
using control::testing::kVision;
using control::testing::training_job;
using nlohmann::json;
using std::chrono::seconds;

// A cluster that refuses the trainer's Job, and counts how often it is asked for.
struct Refusing : Harness {
  int tries = 0;
  ErrorCode code;

  explicit Refusing(ErrorCode with) : code(with) {
    cluster.put(kube::kTrainingJobs, training_job());
    fail = [this](const kube::Action& action) -> Result<void> {
      if (action.resource != kube::kJobs) return {};
      ++tries;
      return Error(code, "no");
    };
  }

  // A decision round looks at the job every three seconds.
  int tries_within(seconds time) {
    const int before = tries;
    for (seconds passed{0}; passed < time; passed += seconds(3)) {
      static_cast<void>(jobs.reconcile(kVision, {}));
      clock.advance(seconds(3));
    }
    return tries - before;
  }
};

TEST_CASE("a refused child is not asked for in each decision round") {
  struct Case {
    const char* situation;
    ErrorCode code;
    int most_in_five_minutes;
  };
  const Case test = GENERATE(Case{"a spec that the API server does not take", ErrorCode::kInvalidArgument, 7},
                             Case{"a quota", ErrorCode::kPermissionDenied, 7});
  CAPTURE(test.situation);
  Refusing harness(test.code);
  const int tries = harness.tries_within(seconds(300));
  CHECK(tries >= 4);
  CHECK(tries <= test.most_in_five_minutes);
  CHECK(harness.events ==
        std::vector<std::string>{test.code == ErrorCode::kPermissionDenied ? "Forbidden" : "SpecRefused"});
}

TEST_CASE("a name that is taken is tried again soon, and then less and less often") {
  Harness harness;
  harness.cluster.put(kube::kTrainingJobs, training_job());
  harness.cluster.put(kube::kSecrets, json{{"metadata", {{"name", "vision-sluice-tls"}, {"namespace", "default"}}}});
  const auto reads_within = [&](seconds time) {
    const auto before = std::count(harness.reads.begin(), harness.reads.end(), "Secret");
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      static_cast<void>(harness.jobs.reconcile(kVision, {}));
      harness.clock.advance(seconds(1));
    }
    return std::count(harness.reads.begin(), harness.reads.end(), "Secret") - before;
  };
  CHECK(reads_within(seconds(4)) >= 2);
  CHECK(reads_within(seconds(300)) <= 12);
  CHECK(reads_within(seconds(300)) <= 6);
}

TEST_CASE("what the refusal depends on ends its pause") {
  struct Case {
    const char* situation;
    std::function<void(Harness&)> change;
    int want_tries;
  };
  const Case test = GENERATE(
      Case{"nothing", [](Harness&) {}, 0},
      Case{"a corrected spec",
           [](Harness& harness) { harness.cluster.at(kube::kTrainingJobs, "vision")["metadata"]["generation"] = 2; },
           1},
      Case{"a job of the same name",
           [](Harness& harness) { harness.cluster.at(kube::kTrainingJobs, "vision")["metadata"]["uid"] = "uid-2"; }, 0},
      Case{"a child that is gone",
           [](Harness& harness) {
             harness.cluster.finish_deletions();
             static_cast<void>(
                 harness.cluster.perform({kube::Verb::kDelete, kube::kServices, {"default", "vision-workers"}}));
             harness.cluster.finish_deletions();
           },
           2});  // it is made again, which is a change, too
  CAPTURE(test.situation);
  Refusing harness(ErrorCode::kInvalidArgument);
  harness.tries_within(seconds(12));
  test.change(harness);
  CHECK(harness.tries_within(seconds(6)) == test.want_tries);
}

}  // namespace
}  // namespace sluice::act
