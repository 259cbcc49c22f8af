#include "operator/observe/node_facts.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using nlohmann::json;

json labelled(const char* name, const char* value) { return {{"metadata", {{"labels", {{name, value}}}}}}; }

const control::NodeFacts kFacts{.price_label = "example.dev/price",
                                .prices = {{"m5.large", 0.096}},
                                .network_label = "example.dev/gbit",
                                .network_gigabits = 10};

TEST_CASE("a node's price is its label's, else its instance type's, else not known") {
  struct Case {
    const char* label;
    const char* value;
    double want;
  };
  const Case test =
      GENERATE(Case{"example.dev/price", "1.25", 1.25}, Case{"example.dev/price", "free", 0},
               Case{"example.dev/price", "-1", 0}, Case{"example.dev/price", "nan", 0},
               Case{"example.dev/price", "1e3x", 0}, Case{"node.kubernetes.io/instance-type", "m5.large", 0.096},
               Case{"node.kubernetes.io/instance-type", "p5", 0}, Case{"x", "y", 0});
  CAPTURE(test.label, test.value);
  const json node = labelled(test.label, test.value);
  CHECK(price_per_hour(api::Node(node), kFacts) == test.want);
  CHECK(price_per_hour(api::Node(node), {}) == 0);
}

TEST_CASE("a node's link is its label's, else the configuration's, else not known") {
  const json fast = labelled("example.dev/gbit", "100");
  const json plain = labelled("x", "y");
  CHECK(network_bytes_per_second(api::Node(fast), kFacts) == 12.5e9);
  CHECK(network_bytes_per_second(api::Node(plain), kFacts) == 1.25e9);
  CHECK_FALSE(network_bytes_per_second(api::Node(plain), {}).has_value());
}

TEST_CASE("the clouds' labels say which node may be reclaimed") {
  const std::pair<const char*, const char*> spot[] = {{"karpenter.sh/capacity-type", "spot"},
                                                      {"eks.amazonaws.com/capacityType", "SPOT"},
                                                      {"cloud.google.com/gke-spot", "true"},
                                                      {"kubernetes.azure.com/scalesetpriority", "spot"}};
  for (const auto& [label, value] : spot) {
    const json node = labelled(label, value);
    CHECK(api::Node(node).spot());
  }
  const json on_demand = labelled("karpenter.sh/capacity-type", "on-demand");
  CHECK_FALSE(api::Node(on_demand).spot());
}

}  // namespace
}  // namespace sluice::observe
