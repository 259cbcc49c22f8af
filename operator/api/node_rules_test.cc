#include "operator/api/node_rules.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// The node of the tables below.
const json kNode = json::parse(R"({
  "metadata": {"name": "n1", "labels": {"zone": "a", "cores": "32", "empty": "", "arch": "amd64"}}})");

// What docs.kubernetes.io says in "Assigning Pods to Nodes", and kube-scheduler's own tests where it is silent.
TEST_CASE("a node selector asks for every one of its labels") {
  struct Row {
    const char* selector;
    bool admitted;
  };
  const Row row =
      GENERATE(Row{"{}", true}, Row{R"({"zone": "a"})", true}, Row{R"({"zone": "b"})", false},
               Row{R"({"zone": "a", "cores": "32"})", true}, Row{R"({"zone": "a", "cores": "8"})", false},
               Row{R"({"rack": "1"})", false}, Row{R"({"empty": ""})", true}, Row{R"({"rack": ""})", false});
  CAPTURE(row.selector);
  const json spec = {{"nodeSelector", json::parse(row.selector)}};
  CHECK(NodeRules(spec).admit(Node(kNode)) == row.admitted);
}

TEST_CASE("what each operator of a node affinity asks for") {
  struct Row {
    const char* expression;
    bool admitted;
  };
  const Row row = GENERATE(
      Row{R"({"key": "zone", "operator": "In", "values": ["b", "a"]})", true},
      Row{R"({"key": "zone", "operator": "In", "values": ["b"]})", false},
      Row{R"({"key": "rack", "operator": "In", "values": ["", "1"]})", false},
      Row{R"({"key": "zone", "operator": "NotIn", "values": ["b"]})", true},
      Row{R"({"key": "zone", "operator": "NotIn", "values": ["a", "b"]})", false},
      Row{R"({"key": "rack", "operator": "NotIn", "values": ["1"]})", true},  // no such label
      Row{R"({"key": "zone", "operator": "Exists"})", true}, Row{R"({"key": "empty", "operator": "Exists"})", true},
      Row{R"({"key": "rack", "operator": "Exists"})", false},
      Row{R"({"key": "rack", "operator": "DoesNotExist"})", true},
      Row{R"({"key": "zone", "operator": "DoesNotExist"})", false},
      Row{R"({"key": "cores", "operator": "Gt", "values": ["31"]})", true},
      Row{R"({"key": "cores", "operator": "Gt", "values": ["32"]})", false},
      Row{R"({"key": "cores", "operator": "Lt", "values": ["33"]})", true},
      Row{R"({"key": "cores", "operator": "Lt", "values": ["32"]})", false},
      Row{R"({"key": "cores", "operator": "Gt", "values": ["+4"]})", true},  // by number, not by text
      Row{R"({"key": "cores", "operator": "Lt", "values": ["4"]})", false},
      Row{R"({"key": "zone", "operator": "Gt", "values": ["1"]})", false},
      Row{R"({"key": "cores", "operator": "Gt", "values": ["many"]})", false},
      Row{R"({"key": "cores", "operator": "Gt", "values": ["1", "2"]})", false},
      Row{R"({"key": "rack", "operator": "Lt", "values": ["5"]})", false},
      Row{R"({"key": "zone", "operator": "Like", "values": ["a"]})", false});
  CAPTURE(row.expression);
  json spec;
  json& terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  terms.push_back({{"matchExpressions", json::array({json::parse(row.expression)})}});
  CHECK(NodeRules(spec).admit(Node(kNode)) == row.admitted);
}

TEST_CASE("one term is enough, and it asks for all that it says") {
  struct Row {
    const char* terms;
    bool admitted;
  };
  const Row row = GENERATE(
      Row{"[]", false}, Row{"[{}]", false},
      Row{R"([{"matchExpressions": []}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}])", true},
      Row{R"([{"matchExpressions": [{"key": "zone", "operator": "Exists"}, {"key": "rack", "operator": "Exists"}]}])",
          false},
      Row{R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}])", true},
      Row{R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}])", false},
      Row{R"([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}])", true},
      Row{R"([{"matchFields": [{"key": "spec.name", "operator": "NotIn", "values": ["n2"]}]}])", false},
      Row{R"([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
               "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}])",
          false});
  CAPTURE(row.terms);
  json spec;
  spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
      json::parse(row.terms);
  CHECK(NodeRules(spec).admit(Node(kNode)) == row.admitted);
  spec["nodeSelector"] = {{"zone", "b"}};  // both have to be met
  CHECK_FALSE(NodeRules(spec).admit(Node(kNode)));
}

TEST_CASE("which toleration covers the taint team=red:NoSchedule") {
  struct Row {
    const char* toleration;
    bool covers;
  };
  const Row row =
      GENERATE(Row{R"({"key": "team", "operator": "Equal", "value": "red", "effect": "NoSchedule"})", true},
               Row{R"({"key": "team", "value": "red"})", true}, Row{R"({"key": "team", "value": "blue"})", false},
               Row{R"({"key": "team"})", false}, Row{R"({"key": "team", "operator": "Exists"})", true},
               Row{R"({"operator": "Exists"})", true}, Row{R"({"operator": "Exists", "effect": "NoSchedule"})", true},
               Row{R"({"operator": "Exists", "effect": "NoExecute"})", false},
               Row{R"({"key": "other", "operator": "Exists"})", false},
               Row{R"({"key": "team", "operator": "Lt", "value": "red"})", false});
  CAPTURE(row.toleration);
  json node = kNode;
  node["spec"]["taints"] = json::array({{{"key", "team"}, {"value", "red"}, {"effect", "NoSchedule"}}});
  const json spec = {{"tolerations", json::array({json::parse(row.toleration)})}};
  CHECK(NodeRules(spec).admit(Node(node)) == row.covers);
}

TEST_CASE("every taint that repels has to be tolerated, a soft one need not be") {
  const json spec = {{"tolerations", json::array({{{"key", "a"}, {"operator", "Exists"}}})}};
  json node = kNode;
  const auto taint = [&](const char* key, const char* effect) {
    node["spec"]["taints"].push_back({{"key", key}, {"effect", effect}});
  };
  taint("a", "NoExecute");
  CHECK(NodeRules(spec).admit(Node(node)));
  taint("b", "PreferNoSchedule");
  CHECK(NodeRules(spec).admit(Node(node)));
  taint("b", "NoExecute");
  CHECK_FALSE(NodeRules(spec).admit(Node(node)));
}

TEST_CASE("preferences and nonsense are no rules") {
  for (const char* text :
       {"null", "{}", R"({"nodeSelector": null, "affinity": null, "tolerations": null})",
        R"({"nodeSelector": 1, "affinity": [], "tolerations": "x"})", R"({"tolerations": [1, null]})",
        R"({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 1, "preference": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}}]}}})"}) {
    CAPTURE(text);
    const json spec = json::parse(text);
    CHECK(NodeRules(spec).admit(Node(kNode)));
  }
}

TEST_CASE("rules that are written alike are the same") {
  const json plain = json::object();
  const json other_image = {{"containers", json::array({{{"image", "x"}}})}};
  const json zoned = {{"nodeSelector", {{"zone", "a"}}}};
  CHECK(NodeRules(plain).text() == NodeRules(other_image).text());
  CHECK(NodeRules(plain).text() != NodeRules(zoned).text());
}

}  // namespace
}  // namespace sluice::api
