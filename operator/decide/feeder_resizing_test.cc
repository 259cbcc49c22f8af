#include "operator/decide/feeder_resizing.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using api::FeederCpu;
using api::FeederView;
using nlohmann::json;
using observe::FeederPod;
using Resize = FeederView::Resize;

const scheduler::JobId kVisionJob{"default", "vision"};

FeederPod pod(FeederCpu cpu, const std::string& name = "vision-0", const std::string& node = "n1") {
  FeederView feeder;
  feeder.wanted = feeder.in_force = cpu;
  return {{"default", name}, "uid-" + name, "uid-vision", node, feeder};
}

scheduler::Plan plan(std::vector<scheduler::LocalCpu> local) {
  scheduler::JobPlan job;
  job.id = kVisionJob;
  job.local = std::move(local);
  job.explanation = "because";
  return {.jobs = {job}};
}

scheduler::Plan plan(std::int64_t request, std::int64_t limit) { return plan({{"n1", request, limit}}); }

// One pod, seen again and again.
struct ResizingHarness {
  FeederResizing resizing;
  FeederPod seen = pod({250, 500});
  double now_seconds = 1000;

  std::vector<FeederOrder> orders(const scheduler::Plan& plan) {
    return resizing.orders({{kVisionJob, {seen}}}, plan, now_seconds);
  }
  // The API server and the kubelet do as they are told.
  void carry_out(const FeederOrder& order) { seen.feeder.wanted = seen.feeder.in_force = order.to; }
};

TEST_CASE("a feeder with other CPU than planned is resized, only if it still is this pod") {
  ResizingHarness harness;
  const auto orders = harness.orders(plan(2000, 8000));
  REQUIRE(orders.size() == 1);
  const kube::Action& action = orders[0].action;
  CHECK(action.to_string() == "apply Pod default/vision-0/resize");
  CHECK(action.uid == "uid-vision-0");
  CHECK(action.field_manager == "sluice-scheduler");
  CHECK(action.body == json::parse(R"({"spec": {"initContainers": [{"name": "sluice-feeder", "resources":
                                      {"requests": {"cpu": "2000m"}, "limits": {"cpu": "8000m"}}}]}})"));
  CHECK(orders[0].event.reason == "FeederResized");
  CHECK(orders[0].event.key == kube::ObjectKey{"default", "vision"});
  CHECK(orders[0].event.uid == "uid-vision");
  CHECK(orders[0].event.note == "feeder CPU 250m (limit 500m) -> 2000m (limit 8000m): because");
}

TEST_CASE("changes within a tenth are left, larger ones are made") {
  struct Case {
    FeederCpu now;
    std::int64_t request, limit;
    bool resized;
  };
  const Case test =
      GENERATE(Case{{2000, 8000}, 2000, 8000, false}, Case{{2000, 8000}, 2190, 8700, false},
               Case{{2000, 8000}, 2250, 8000, true}, Case{{2000, 8000}, 2000, 6000, true},
               Case{{250, 500}, 290, 540, false}, Case{{250, 500}, 310, 500, true}, Case{{250, 0}, 250, 8000, true});
  ResizingHarness harness;
  harness.seen = pod(test.now);
  CHECK(harness.orders(plan(test.request, test.limit)).size() == (test.resized ? 1 : 0));
}

TEST_CASE("the pods of a job on a node have equal parts of its CPU there") {
  FeederResizing resizing;
  const observe::FeederPods feeders = {
      {kVisionJob, {pod({250, 500}, "a", "n1"), pod({250, 500}, "b", "n2"), pod({250, 500}, "c", "n1")}}};
  const auto orders = resizing.orders(feeders, plan({{"n1", 1010, 8000}, {"n2", 3000, 4000}}), 0);
  REQUIRE(orders.size() == 3);
  CHECK(orders[0].to == FeederCpu{510, 4000});
  CHECK(orders[1].to == FeederCpu{500, 4000});
  CHECK(orders[2].to == FeederCpu{3000, 4000});
  CHECK(orders[2].action.key.name == "b");
}

TEST_CASE("a guaranteed pod stays guaranteed: its limit is its request") {
  ResizingHarness harness;
  harness.seen.feeder.qos_class = FeederView::QosClass::kGuaranteed;
  CHECK(harness.orders(plan(2000, 8000)).at(0).to == FeederCpu{2000, 2000});
}

TEST_CASE("a feeder never asks for nothing, nor for more than its limit") {
  ResizingHarness harness;
  CHECK(harness.orders(plan(0, 0)).at(0).to == FeederCpu{10, 10});
}

TEST_CASE("what frees room is written first") {
  FeederResizing resizing;
  const observe::FeederPods feeders = {{kVisionJob, {pod({250, 500}, "a", "n1"), pod({4000, 8000}, "b", "n2")}}};
  const auto orders = resizing.orders(feeders, plan({{"n1", 2000, 8000}, {"n2", 1000, 8000}}), 0);
  REQUIRE(orders.size() == 2);
  CHECK(orders[0].frees_room());
  CHECK_FALSE(orders[1].frees_room());
}

TEST_CASE("a feeder that has just grown grows no further for half a minute, and shrinks at once") {
  ResizingHarness harness;
  harness.carry_out(harness.orders(plan(1000, 8000)).at(0));
  harness.now_seconds += 15;
  CHECK(harness.orders(plan(2000, 8000)).empty());
  CHECK(harness.orders(plan(500, 8000)).size() == 1);
}

TEST_CASE("half a minute after it grew a feeder may grow again") {
  ResizingHarness harness;
  harness.carry_out(harness.orders(plan(1000, 8000)).at(0));
  harness.now_seconds += 31;
  CHECK(harness.orders(plan(2000, 8000)).size() == 1);
}

TEST_CASE("a write that is not seen yet is not made again within a minute") {
  ResizingHarness harness;
  CHECK(harness.orders(plan(1000, 8000)).size() == 1);
  harness.now_seconds += 40;
  CHECK(harness.orders(plan(1000, 8000)).empty());
  harness.now_seconds += 30;
  CHECK(harness.orders(plan(1000, 8000)).size() == 1);
}

TEST_CASE("a resize that does not happen is taken back, and the feeder is left alone for a while") {
  struct Case {
    Resize resize;
    const char* words;
    double after_seconds;
    const char* problem;
  };
  const Case test = GENERATE(Case{Resize::kInfeasible, "node has no 2 cores", 1, "node has no 2 cores"},
                             Case{Resize::kDeferred, "no room now", 61, "no room now"},
                             Case{Resize::kUnderWay, "", 61, "the kubelet has not done it"});
  ResizingHarness harness;
  harness.carry_out(harness.orders(plan(2000, 8000)).at(0));
  harness.seen.feeder.in_force = {250, 500};
  harness.seen.feeder.resize = test.resize;
  harness.seen.feeder.problem = test.words;
  harness.now_seconds += test.after_seconds;
  const auto orders = harness.orders(plan(2000, 8000));
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].to == FeederCpu{250, 500});
  CHECK(orders[0].event.type == kube::EventType::kWarning);
  CHECK(orders[0].event.reason == "FeederResizeFailed");
  CHECK_THAT(orders[0].event.note, Catch::Contains(test.problem));
  CHECK(harness.resizing.fixed(harness.now_seconds + 59) == std::set<std::string>{"uid-vision-0"});
  CHECK_THAT(harness.resizing.problem_of(kVisionJob, harness.now_seconds + 59), Catch::Contains(test.problem));
  CHECK(harness.resizing.fixed(harness.now_seconds + 61).empty());
  CHECK(harness.resizing.problem_of(kVisionJob, harness.now_seconds + 61).empty());
}

TEST_CASE("a resize that waits for room is given a minute") {
  ResizingHarness harness;
  harness.carry_out(harness.orders(plan(2000, 8000)).at(0));
  harness.seen.feeder.in_force = {250, 500};
  harness.seen.feeder.resize = Resize::kDeferred;
  harness.now_seconds += 30;
  CHECK(harness.orders(plan(2000, 8000)).empty());
  CHECK(harness.resizing.fixed(harness.now_seconds).empty());
}

TEST_CASE("each failure in a row doubles the pause, to five minutes; a success forgets them") {
  ResizingHarness harness;
  const Error forbidden(ErrorCode::kPermissionDenied, "no right to patch pods/resize");
  double pause = 60;
  for (int failure = 0; failure < 8; ++failure) {
    const auto orders = harness.orders(plan(2000, 8000));
    REQUIRE(orders.size() == 1);
    CHECK(harness.resizing.refused(orders[0], forbidden, harness.now_seconds));
    CHECK(harness.resizing.fixed(harness.now_seconds + pause - 1).size() == 1);
    CHECK(harness.resizing.fixed(harness.now_seconds + pause + 1).empty());
    harness.now_seconds += pause + 1;
    pause = std::min(2 * pause, 300.0);
  }
  harness.carry_out(harness.orders(plan(2000, 8000)).at(0));
  CHECK(harness.resizing.doubtful().contains(kVisionJob));
  harness.now_seconds += 31;
  CHECK(harness.orders(plan(2000, 8000)).empty());
  CHECK(harness.resizing.doubtful().empty());
  REQUIRE(harness.resizing.refused(harness.orders(plan(4000, 8000)).at(0), forbidden, harness.now_seconds));
  CHECK(harness.resizing.fixed(harness.now_seconds + 61).empty());
}

TEST_CASE("an error that may pass by itself fixes nothing") {
  ResizingHarness harness;
  const auto orders = harness.orders(plan(2000, 8000));
  CHECK_FALSE(harness.resizing.refused(orders.at(0), unavailable("busy"), harness.now_seconds));
  CHECK(harness.resizing.fixed(harness.now_seconds + 1).empty());
  CHECK(harness.orders(plan(2000, 8000)).size() == 1);
}

TEST_CASE("a resize that an earlier process asked for has a minute from when it is first seen") {
  ResizingHarness harness;
  harness.seen.feeder.wanted = {2000, 8000};
  harness.seen.feeder.resize = Resize::kUnderWay;
  CHECK(harness.orders(plan(2000, 8000)).empty());
  harness.now_seconds += 61;
  CHECK(harness.orders(plan(2000, 8000)).at(0).to == FeederCpu{250, 500});
}

TEST_CASE("taking back keeps a limit that cannot be removed") {
  ResizingHarness harness;
  harness.seen = pod({250, 0});
  harness.carry_out(harness.orders(plan(2000, 8000)).at(0));
  harness.seen.feeder.in_force = {250, 0};
  harness.seen.feeder.resize = Resize::kInfeasible;
  CHECK(harness.orders(plan(2000, 8000)).at(0).to == FeederCpu{250, 8000});
}

TEST_CASE("a job whose CPU is not planned is left alone") {
  ResizingHarness harness;
  CHECK(harness.orders(plan({})).empty());
  CHECK(harness.resizing.orders({}, plan(2000, 8000), 0).empty());
}

}  // namespace
}  // namespace sluice::decide
