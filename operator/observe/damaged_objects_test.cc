// Whatever an object holds where something else was expected, a round goes on: one odd object must not end the
// decisions for the whole cluster. The API server checks its own kinds, but kinds and fields come from servers of any
// version.
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/api/object_trim.h"
#include "operator/api/pod_trim.h"
#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

json node_of_a_cloud() {
  json object = node("n2", "16");
  object["metadata"]["labels"] = {{"topology.kubernetes.io/zone", "a"}, {"price", "0.5"}, {"gbit", "10"}};
  object["spec"]["taints"] = json::array({{{"key", "team"}, {"value", "red"}, {"effect", "NoSchedule"}}});
  object["status"]["allocatable"]["memory"] = "64Gi";
  object["status"]["allocatable"]["nvidia.com/gpu"] = "8";
  return object;
}

json waiting_pod() {
  json object = pod("waiting", "", "2");
  object["spec"]["initContainers"] = json::array({{{"name", "sidecar"}, {"restartPolicy", "Always"}}});
  object["spec"]["nodeSelector"] = {{"zone", "a"}};
  object["spec"]["affinity"] = json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}]}}})");
  object["spec"]["containers"][0]["ports"] = json::array({{{"hostPort", 80}}});
  object["status"]["conditions"] = json::array({{{"type", "PodScheduled"},
                                                 {"status", "False"},
                                                 {"reason", "Unschedulable"},
                                                 {"message", "0/2 nodes are available: 2 Insufficient cpu."}}});
  return object;
}

json trainer_pod_with_feeder() {
  json object = pod("vision-0-abcde", "n1", "1");
  object["metadata"]["labels"] = {{"sluice.dev/job", "vision"}, {"sluice.dev/component", "trainer"}};
  object["metadata"]["ownerReferences"] = json::array({owner_reference("Job", "vision", "uid-job")});
  object["spec"]["initContainers"] = json::array(
      {{{"name", "sluice-feeder"}, {"restartPolicy", "Always"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}});
  object["status"]["initContainerStatuses"] = json::array(
      {{{"name", "sluice-feeder"}, {"state", json::object()}, {"resources", {{"requests", {{"cpu", "1"}}}}}}});
  return object;
}

json spread_pool() {
  json object = pool(2);
  json& spec = object["spec"]["template"]["spec"];
  spec["topologySpreadConstraints"] =
      json::array({{{"maxSkew", 1},
                    {"topologyKey", "topology.kubernetes.io/zone"},
                    {"whenUnsatisfiable", "DoNotSchedule"},
                    {"labelSelector", {{"matchLabels", {{"sluice.dev/job", "vision"}}}}}}});
  spec["tolerations"] = json::array({{{"key", "team"}, {"operator", "Exists"}}});
  object["spec"]["workerResources"] = {{"requests", {{"cpu", "1"}, {"memory", "1Gi"}}}};
  return object;
}

ClusterObjects rich_cluster() {
  ClusterObjects objects = cluster();
  put(objects.nodes, node_of_a_cloud());
  put(objects.pods, waiting_pod());
  put(objects.pods, trainer_pod_with_feeder());
  put(objects.pools, spread_pool());
  put(objects.resource_quotas,
      json::parse(R"({"metadata": {"name": "q", "namespace": "default"}, "spec": {"scopeSelector": {"matchExpressions":
          [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]}},
          "status": {"hard": {"requests.cpu": "8", "pods": "9"}, "used": {"requests.cpu": "1"}}})"));
  put(objects.limit_ranges,
      json::parse(R"({"metadata": {"name": "l", "namespace": "default"}, "spec": {"limits": [{"type": "Container",
          "max": {"cpu": "4"}, "min": {"memory": "1Mi"}, "default": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}}]}})"));
  return objects;
}

void round(const ClusterObjects& objects) {
  Circumstances circumstances;
  circumstances.nodes = {.price_label = "price", .prices = {}, .network_label = "gbit", .network_gigabits = 0};
  const auto snapshot = SnapshotBuilder().build(objects, {{}, "no metrics"}, {}, circumstances, kNow + 60);
  CHECK(snapshot.nodes.size() == objects.nodes.size());
}

// Every leaf and all that it lies in, but for the object's parts and its name.
std::vector<json::json_pointer> places_of(const json& object) {
  std::set<std::string> places;
  const json leaves = object.flatten();
  for (const auto& [leaf, value] : leaves.items())
    for (json::json_pointer place(leaf); !place.parent_pointer().empty(); place = place.parent_pointer())
      places.insert(place.to_string());
  for (const char* name : {"/metadata/name", "/metadata/namespace"}) places.erase(name);
  return {places.begin(), places.end()};
}

TEST_CASE("an object that is odd anywhere ends no round, as the informers trim it and as it is") {
  using Collection = kube::Store::Objects ClusterObjects::*;
  using Trim = void (*)(json&);
  const auto [collection, trim] =
      GENERATE(table<Collection, Trim>({{&ClusterObjects::nodes, api::trim_node},
                                        {&ClusterObjects::pods, api::trim_pod},
                                        {&ClusterObjects::pools, nullptr},
                                        {&ClusterObjects::jobs, api::trim_trainer_job},
                                        {&ClusterObjects::training_jobs, api::trim_training_job},
                                        {&ClusterObjects::resource_quotas, nullptr},
                                        {&ClusterObjects::limit_ranges, nullptr}}));
  const json odd_values[] = {nullptr, -1.5, "x", json::array({7}), json::object({{"a", 1}})};
  const ClusterObjects whole = rich_cluster();
  for (const auto& [key, object] : whole.*collection)
    for (const json::json_pointer& place : places_of(*object))
      for (const json& odd : odd_values) {
        CAPTURE(key.to_string(), place.to_string(), odd.dump());
        json damaged = *object;
        damaged[place] = odd;
        ClusterObjects objects = whole;
        (objects.*collection)[key] = shared(damaged);
        CHECK_NOTHROW(round(objects));
        if (trim == nullptr) continue;
        CHECK_NOTHROW(trim(damaged));
        (objects.*collection)[key] = shared(std::move(damaged));
        CHECK_NOTHROW(round(objects));
      }
}

}  // namespace
}  // namespace sluice::observe
