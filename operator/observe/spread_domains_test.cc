#include "operator/observe/spread_domains.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;
using scheduler::kNoDomain;

// n1 and n2 in zone a, tainted n3 in zone b, n4 without a zone.
struct Cluster {
  kube::Store::Objects objects;
  std::vector<scheduler::Node> nodes{4};
  std::vector<scheduler::Job> jobs{1};

  Cluster() {
    const char* zones[] = {"a", "a", "b", ""};
    for (int i = 0; i < 4; ++i) {
      json object = node("n" + std::to_string(i + 1), "4");
      object["metadata"]["labels"] = {{"host", "n" + std::to_string(i + 1)}};
      if (*zones[i] != 0) object["metadata"]["labels"]["zone"] = zones[i];
      if (i == 2) object["spec"]["taints"] = json::array({{{"key", "gpu"}, {"effect", "NoSchedule"}}});
      put(objects, object);
    }
  }

  std::vector<std::vector<int>> domains() const {
    std::vector<std::vector<int>> all;
    for (const scheduler::Node& node : nodes) all.push_back(node.domains);
    return all;
  }
};

TEST_CASE("the values of a label are the domains, and every label is read once") {
  Cluster cluster;
  cluster.jobs.resize(3);
  const api::NodeRules anywhere(json::object());
  const std::vector<api::SpreadTerm> zone = {{.topology_key = "zone", .most_ahead = 2}};
  const std::vector<api::SpreadTerm> both = {{.topology_key = "host", .apart = true}, zone[0]};
  set_spread({{&anywhere, zone}, {&anywhere, both}, {&anywhere, {}}}, cluster.objects, cluster.nodes, cluster.jobs);
  CHECK(cluster.domains() == std::vector<std::vector<int>>{{0, 0}, {0, 1}, {1, 2}, {kNoDomain, 3}});
  CHECK(cluster.jobs[2].spread.empty());
  REQUIRE(cluster.jobs[1].spread.size() == 2);
  const scheduler::SpreadRule& apart = cluster.jobs[1].spread[0];
  CHECK((apart.topology == 1 && apart.most_ahead == 1 && apart.counted_domains.empty() && !apart.closed_outside));
  for (const scheduler::SpreadRule& rule : {cluster.jobs[0].spread.at(0), cluster.jobs[1].spread[1]})
    CHECK((rule.topology == 0 && rule.most_ahead == 2 && rule.closed_outside));
}

TEST_CASE("domains count as kube-scheduler counts them") {
  struct Row {
    const char* situation;
    json pod_spec;
    api::SpreadTerm term;
    std::vector<bool> counted;
  };
  const json only_a = {{"nodeSelector", {{"zone", "a"}}}};
  const Row rows[] = {
      {"all, tainted or not", json::object(), {.topology_key = "zone"}, {true, true}},
      {"those whose taints the pods tolerate", json::object(), {.topology_key = "zone", .by_taints = true}, {true}},
      {"those that the node selector allows", only_a, {.topology_key = "zone"}, {true}},
      {"not by the node selector", only_a, {.topology_key = "zone", .by_affinity = false}, {true, true}},
      {"as many as there have to be", json::object(), {.topology_key = "zone", .least_domains = 2}, {true, true}},
      {"too few: the least is none", json::object(), {.topology_key = "zone", .least_domains = 3}, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Cluster cluster;
    const api::NodeRules rules(row.pod_spec);
    const std::vector<api::SpreadTerm> terms = {row.term};
    set_spread({{&rules, terms}}, cluster.objects, cluster.nodes, cluster.jobs);
    CHECK(cluster.jobs[0].spread.at(0).counted_domains == row.counted);
  }
}

TEST_CASE("without a term the nodes stay as they are") {
  Cluster cluster;
  const api::NodeRules anywhere(json::object());
  set_spread({{&anywhere, {}}}, cluster.objects, cluster.nodes, cluster.jobs);
  CHECK(cluster.domains() == std::vector<std::vector<int>>(4));
}

}  // namespace
}  // namespace sluice::observe
