// Workers that wait at a scheduling gate, such as Kueue's.
#include <nlohmann/json.hpp>

#include "operator/observe/snapshot_builder.h"
#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"
#include "src/kube/timestamp.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

TEST_CASE("workers that a scheduling gate holds back are no capacity; two of them go on asking") {
  struct Case {
    const char* name;
    int ready;
    int waiting;
    double for_seconds;
    int want_max;
  };
  const Case test = GENERATE(Case{"just made", 2, 5, 29, 8}, Case{"held back", 2, 5, 30, 4},
                             Case{"one held back", 3, 1, 100, 4}, Case{"none", 4, 0, 100, 8});
  INFO(test.name);
  ClusterObjects objects = cluster();
  objects.pods.clear();
  for (int i = 0; i < test.ready + test.waiting; ++i) {
    json pod = worker("vision-worker-" + std::to_string(i), i < test.ready ? "n1" : "");
    if (i >= test.ready) {
      pod["spec"]["schedulingGates"] = json::array({{{"name", "kueue.x-k8s.io/admission"}}});
      pod["status"]["conditions"] = json::array();
    }
    put(objects.pods, pod);
  }
  json job = training_job();
  job["spec"]["dataWorkers"]["min"] = 6;
  put(objects.training_jobs, job);
  const scheduler::Job seen =
      SnapshotBuilder().build(objects, {{}, "no metrics"}, {}, {}, kNow + test.for_seconds).jobs.at(0);
  CHECK(seen.max_workers == test.want_max);
  CHECK(seen.min_workers == std::min(6, test.want_max));
  CHECK(seen.held_at_gate == (test.want_max < 8));
}

TEST_CASE("how long workers wait at a gate is counted by our clock, however wrong the API server's is") {
  const auto wrong_by = std::chrono::seconds(GENERATE(-600, 0, 600));
  INFO(wrong_by.count());
  const auto made = std::chrono::system_clock::from_time_t(static_cast<std::time_t>(kNow)) + std::chrono::seconds(5);
  ClusterObjects objects = cluster();
  objects.pods.clear();
  SnapshotBuilder builder;
  const auto is_held = [&](double seconds) {
    return builder.build(objects, {{}, "no metrics"}, {}, {}, kNow + seconds).jobs.at(0).held_at_gate;
  };
  CHECK_FALSE(is_held(0));
  for (const char* name : {"vision-worker-0", "vision-worker-1", "vision-worker-2"}) {
    json pod = worker(name, "");
    pod["metadata"]["creationTimestamp"] = kube::format_time(made + wrong_by);
    pod["spec"]["schedulingGates"] = json::array({{{"name", "kueue.x-k8s.io/admission"}}});
    pod["status"]["conditions"] = json::array();
    put(objects.pods, pod);
  }
  CHECK_FALSE(is_held(6));
  CHECK_FALSE(is_held(29));
  CHECK(is_held(37));
}

}  // namespace
}  // namespace sluice::observe
