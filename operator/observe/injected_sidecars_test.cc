// Containers that an admission webhook, such as a mesh's, has added to the pods of data workers.
#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

TEST_CASE("what a webhook has added to workers' pods takes room from further workers, and none from pods that wait") {
  ClusterObjects objects = cluster();
  json with_memory = node("n1", "4");
  with_memory["status"]["allocatable"]["memory"] = "8Gi";
  put(objects.nodes, with_memory);
  for (const char* name : {"vision-worker-0", "vision-worker-1"}) {
    json own = worker(name, "n1");
    own["spec"]["containers"][0]["name"] = "sluice-worker";
    own["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi";
    own["spec"]["containers"].push_back(
        json::parse(R"({"name": "istio-proxy", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}})"));
    put(objects.pods, own);
  }
  const auto snapshot = build(objects);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 700 + 2 * 100);
  CHECK(snapshot.nodes[0].free_memory_bytes == (std::int64_t{8} << 30) - (std::int64_t{256} << 20));

  // Without the workers there are 3300 millicores for it, and that much is kept free.
  json waiting = pod("waiting", "", "3250m");
  waiting["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                                  {"status", "False"},
                                                  {"reason", "Unschedulable"},
                                                  {"message", "0/1 nodes are available: 1 Insufficient cpu."}}});
  put(objects.pods, waiting);
  CHECK(build(objects).nodes[0].requested_by_others_millicores == 700 + 3250 + 2 * 100);
}

}  // namespace
}  // namespace sluice::observe
