#include "operator/observe/node_groups.h"

#include <nlohmann/json.hpp>

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;
using nlohmann::json;

json node_in(const std::string& name, const std::string& zone) {
  json object = node(name, "4");
  object["metadata"]["labels"] = {{"zone", zone}, {"kubernetes.io/hostname", name}};
  return object;
}

std::vector<int> groups_of(const std::vector<scheduler::Node>& nodes) {
  std::vector<int> groups;
  for (const scheduler::Node& node : nodes) groups.push_back(node.group);
  return groups;
}

TEST_CASE("nodes that no job tells apart are one group, whatever their labels") {
  kube::Store::Objects objects;
  for (const char* name : {"n1", "n2", "n3"}) put(objects, node_in(name, name == std::string("n3") ? "b" : "a"));
  std::vector<scheduler::Node> nodes(3);
  const api::NodeRules anywhere(json::object());
  const api::NodeRules only_a(json({{"nodeSelector", {{"zone", "a"}}}}));
  NodeGroups groups;
  {
    JobRules rules;
    CHECK(rules.add(anywhere) == 0);
    CHECK(rules.add(api::NodeRules(anywhere)) == 0);
    CHECK(groups.divide(rules, objects, nodes) == std::vector<std::vector<bool>>{{false}});
    CHECK(groups_of(nodes) == std::vector{0, 0, 0});
  }
  JobRules rules;
  rules.add(anywhere);
  CHECK(rules.add(only_a) == 1);
  CHECK(groups.divide(rules, objects, nodes) == std::vector<std::vector<bool>>{{false, false}, {false, true}});
  CHECK(groups_of(nodes) == std::vector{0, 0, 1});
  SECTION("a node that changes is looked at again") {
    put(objects, node_in("n1", "b"));
    groups.divide(rules, objects, nodes);
    CHECK(groups_of(nodes) == std::vector{0, 1, 0});
  }
  SECTION("a node that goes is forgotten, and a namesake is another one") {
    const auto n3 = objects.extract(kube::ObjectKey{"", "n3"});
    nodes.pop_back();
    CHECK(groups.divide(rules, objects, nodes) == std::vector<std::vector<bool>>{{false}, {false}});
    put(objects, node_in("n3", "a"));
    nodes.emplace_back();
    groups.divide(rules, objects, nodes);
    CHECK(groups_of(nodes) == std::vector{0, 0, 0});
  }
}

TEST_CASE("without jobs or without nodes there is nothing to tell apart") {
  kube::Store::Objects objects;
  std::vector<scheduler::Node> nodes;
  const api::NodeRules anywhere(json::object());
  JobRules rules;
  CHECK(NodeGroups().divide(rules, objects, nodes).empty());
  rules.add(anywhere);
  CHECK(NodeGroups().divide(rules, objects, nodes) == std::vector<std::vector<bool>>{{}});
}

}  // namespace
}  // namespace sluice::observe
