#include "operator/observe/pending_pods.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

constexpr const char* kNoCpu = "0/1 nodes are available: 1 Insufficient cpu.";
constexpr const char* kNoMemory = "0/1 nodes are available: 1 Insufficient memory.";

// A pod of no job of Sluice, which kube-scheduler could not place.
json refused(const std::string& name, const std::string& cpu, const std::string& message = kNoCpu) {
  json object = pod(name, "", cpu);
  object["status"] = {
      {"phase", "Pending"},
      {"conditions",
       json::array(
           {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}, {"message", message}}})}};
  return object;
}

// One builder over time: what others request of each node, at seconds after kNow.
struct Watched {
  ClusterObjects objects = cluster();
  SnapshotBuilder builder = {};

  std::vector<std::int64_t> requested_at(double seconds) {
    std::vector<std::int64_t> requested;
    for (const auto& node : builder.build(objects, {}, {}, {}, kNow + seconds).nodes)
      requested.push_back(node.requested_by_others_millicores);
    return requested;
  }
};

using Requested = std::vector<std::int64_t>;

TEST_CASE("workers leave room to a pod of no job that would fit without them") {
  Watched watched;
  put(watched.objects.pods, refused("web", "3"));
  CHECK(watched.requested_at(0) == Requested{700 + 3000});
}

TEST_CASE("workers stay where they cannot help a pod that waits") {
  struct Case {
    const char* why;
    json pod;
  };
  json gpu = refused("gpu", "3", "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu.");
  gpu["spec"]["containers"][0]["resources"]["limits"] = {{"nvidia.com/gpu", "1"}};
  json elsewhere = refused("elsewhere", "3");
  elsewhere["spec"]["nodeSelector"] = {{"zone", "b"}};
  json gated = refused("gated", "3");
  gated["status"]["conditions"][0]["reason"] = "SchedulingGated";
  json leaving = refused("leaving", "3");
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z";
  json large = refused("large", "1");
  large["spec"]["containers"][0]["resources"]["requests"]["memory"] = "9Gi";
  const Case cases[] = {
      {"too large for the node", refused("wide", "3500m")},
      {"its memory is too large for the node", large},
      {"the node has no GPU", gpu},
      {"the node is not one of its own", elsewhere},
      {"it waits at a gate", gated},
      {"it is being deleted", leaving},
      {"it lacks a volume", refused("volume", "3", "0/1 nodes are available: 1 node(s) had no available volume.")}};
  for (const Case& each : cases) {
    CAPTURE(each.why);
    Watched watched;
    json n1 = node("n1", "4");
    n1["status"]["allocatable"]["memory"] = "8Gi";
    put(watched.objects.nodes, n1);
    put(watched.objects.pods, each.pod);
    CHECK(watched.requested_at(0) == Requested{700});
  }
}

TEST_CASE("a GPU that another pod uses is no reason to leave, a free one is") {
  Watched watched;
  json n1 = node("n1", "4");
  n1["status"]["allocatable"]["nvidia.com/gpu"] = "1";
  put(watched.objects.nodes, n1);
  json trains = refused("trains", "3");
  trains["spec"]["containers"][0]["resources"]["limits"] = {{"nvidia.com/gpu", "1"}};
  put(watched.objects.pods, trains);
  CHECK(watched.requested_at(0) == Requested{700 + 3000});
  json user = pod("other", "n1", "700m");
  user["spec"]["containers"][0]["resources"]["limits"] = {{"nvidia.com/gpu", "1"}};
  put(watched.objects.pods, user);
  CHECK(watched.requested_at(15) == Requested{700});
}

TEST_CASE("for a pod that lacks memory, as many workers leave as hold it") {
  Watched watched;
  json n1 = node("n1", "4");
  n1["status"]["allocatable"]["memory"] = "4Gi";
  put(watched.objects.nodes, n1);
  for (const char* name : {"vision-worker-0", "vision-worker-1"}) {
    json heavy = worker(name, "n1");
    heavy["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2Gi";
    put(watched.objects.pods, heavy);
  }
  json web = refused("web", "100m", kNoMemory);
  web["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2Gi";
  put(watched.objects.pods, web);
  // One worker of 500m keeps its place.
  CHECK(watched.requested_at(0) == Requested{4000 - 500});
}

TEST_CASE("the room stays free on the same node while workers leave it") {
  Watched watched;
  put(watched.objects.nodes, node("n2", "4"));
  put(watched.objects.pods, worker("vision-worker-1", "n2"));
  put(watched.objects.pods, pod("small", "n2", "500m"));
  put(watched.objects.pods, refused("web", "3"));
  CHECK(watched.requested_at(0) == Requested{700, 3500});
  // Now the other node would have more room.
  watched.objects.pods.erase({"default", "other"});
  watched.objects.pods.erase({"default", "vision-worker-1"});
  CHECK(watched.requested_at(15) == Requested{0, 3500});
  SECTION("until kube-scheduler names another one") {
    json web = refused("web", "3");
    web["status"]["nominatedNodeName"] = "n1";
    put(watched.objects.pods, web);
    CHECK(watched.requested_at(30) == Requested{3000, 500});
  }
}

TEST_CASE("a pod that does not come gives the room back, and is tried again much later") {
  Watched watched;
  put(watched.objects.pods, refused("web", "3"));
  const double patience = PendingPods::kPatienceSeconds;
  CHECK(watched.requested_at(0) == Requested{3700});
  CHECK(watched.requested_at(patience - 1) == Requested{3700});
  CHECK(watched.requested_at(patience) == Requested{700});
  CHECK(watched.requested_at(patience + PendingPods::kRetrySeconds - 1) == Requested{700});
  CHECK(watched.requested_at(patience + PendingPods::kRetrySeconds) == Requested{3700});
}

TEST_CASE("trainers come first, and of other pods no more than fit") {
  Watched watched;
  json trainer = refused("speech-0", "2");
  trainer["metadata"]["labels"] = {{"sluice.dev/component", "trainer"}};
  put(watched.objects.pods, trainer);
  put(watched.objects.pods, refused("a", "3"));
  put(watched.objects.pods, refused("b", "1"));
  put(watched.objects.pods, refused("c", "1"));
  CHECK(watched.requested_at(0) == Requested{700 + 2000 + 1000});
}

}  // namespace
}  // namespace sluice::observe
