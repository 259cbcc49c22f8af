#include "operator/api/accelerators.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("every vendor's accelerators count, whole, sliced or shared") {
  struct Case {
    const char* resources;
    int want;
  };
  const Case test = GENERATE(Case{R"({"nvidia.com/gpu": 2, "cpu": "4"})", 2}, Case{R"({"nvidia.com/gpu": "8"})", 8},
                             Case{R"({"nvidia.com/gpu.shared": 1})", 1}, Case{R"({"nvidia.com/mig-1g.5gb": 3})", 3},
                             Case{R"({"nvidia.com/mig-2g.10gb": 1, "nvidia.com/mig-1g.5gb": 2})", 3},
                             Case{R"({"amd.com/gpu": 1})", 1}, Case{R"({"gpu.intel.com/i915": 1})", 1},
                             Case{R"({"gpu.intel.com/xe": 1, "gpu.intel.com/xe_monitoring": 1})", 1},
                             Case{R"({"habana.ai/gaudi": 8})", 8}, Case{R"({"google.com/tpu": 4})", 4},
                             Case{R"({"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2})", 1},
                             Case{R"({"gpu": 1, "rdma/hca": 1, "memory": "1Gi"})", 0},
                             Case{R"({"nvidia.com/gpu": "many"})", 0}, Case{R"([1])", 0}, Case{"null", 0});
  INFO(test.resources);
  CHECK(accelerators_in(json::parse(test.resources)) == test.want);
}

TEST_CASE("claims count where no resource names an accelerator") {
  struct Case {
    const char* containers;
    int want;
  };
  const Case test = GENERATE(
      Case{R"([{"resources": {"claims": [{"name": "gpu"}]}}])", 1},
      Case{R"([{"resources": {"claims": [{"name": "a"}, {"name": "b"}]}}, {"resources": {"claims": [{"name": "a"}]}}])",
           2},
      Case{R"([{"resources": {"claims": [{"name": "nic"}], "limits": {"nvidia.com/gpu": 4}}}])", 4},
      Case{R"([{"resources": {"limits": {"nvidia.com/gpu": 1}}}, {"resources": {"limits": {"nvidia.com/gpu": 1}}}])",
           2},
      Case{R"([{}])", 0}, Case{R"({"a": 1})", 0});
  INFO(test.containers);
  CHECK(accelerators_of_pod({{"containers", json::parse(test.containers)}}) == test.want);
}

TEST_CASE("labels and taints of nodes with accelerators are known by their keys") {
  for (const char* key :
       {"nvidia.com/gpu", "nvidia.com/gpu.product", "nvidia.com/mig.config", "nvidia.com/cuda.driver.major",
        "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-topology", "karpenter.k8s.aws/instance-gpu-name",
        "k8s.amazonaws.com/accelerator", "amd.com/gpu", "gpu.intel.com/device-id.0300-56c0", "aws.amazon.com/neuron",
        "habana.ai/gaudi", "example.com/GPU-pool"}) {
    INFO(key);
    CHECK(tells_of_accelerators(key));
  }
  for (const char* key : {"kubernetes.io/arch", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "team",
                          "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type", ""}) {
    INFO(key);
    CHECK_FALSE(tells_of_accelerators(key));
  }
}

}  // namespace
}  // namespace sluice::api
