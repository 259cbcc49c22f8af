#include "operator/api/device_claim.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("a pod's claims are those that its containers use, each once") {
  struct Case {
    const char* pod;
    std::vector<DeviceClaim> want;
  };
  const Case test = GENERATE(
      Case{R"({"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "eight"}],
               "containers": [{"resources": {"claims": [{"name": "a"}]}}, {"resources": {"claims": [{"name": "a"}]}}]})",
           {DeviceClaim{"eight", true}}},
      Case{R"({"resourceClaims": [{"name": "a", "resourceClaimName": "mine"}, {"name": "b", "resourceClaimName": "b"}],
               "containers": [{"resources": {"claims": [{"name": "a", "request": "gpu"}]}}]})",
           {DeviceClaim{"mine", false}}},
      Case{R"({"resourceClaims": [{"name": "a", "resourceClaimName": "nic"}], "containers": [
               {"resources": {"claims": [{"name": "a"}], "limits": {"nvidia.com/gpu": 4}}}]})",
           {}},
      Case{R"({"containers": [{"resources": {"claims": [{"name": "unknown"}]}}]})", {}},
      Case{R"({"resourceClaims": {"a": 1}, "containers": [{"resources": {"claims": [7, {"name": 7}]}}]})", {}},
      Case{"null", {}});
  INFO(test.pod);
  CHECK(device_claims_of_pod(json::parse(test.pod)) == test.want);
}

TEST_CASE("what a claim asks for is counted, and told apart by its class") {
  struct Case {
    const char* requests;
    std::int64_t all, accelerators;
  };
  const Case test = GENERATE(
      Case{R"([{"exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 8}}])", 8, 8},
      Case{R"([{"exactly": {"deviceClassName": "mig.nvidia.com"}}, {"exactly": {"deviceClassName": "dranet"}}])", 2, 1},
      Case{R"([{"exactly": {"deviceClassName": "gpu.amd.com", "allocationMode": "All"}}])", 1, 1},
      Case{R"([{"firstAvailable": [{"deviceClassName": "tpu.google.com", "count": 4}, {"deviceClassName": "x"}]}])", 4,
           4},
      Case{R"([{"exactly": {"deviceClassName": "a100", "count": 2}}])", 2, 0},
      Case{R"([{"exactly": {"deviceClassName": 7, "count": "8"}}])", 1, 0},
      Case{R"([{"exactly": {"deviceClassName": "gpu", "count": 9223372036854775807}}])", 1000, 1000},
      Case{R"({"exactly": 1})", 0, 0});
  INFO(test.requests);
  const json devices = {{"devices", {{"requests", json::parse(test.requests)}}}};
  for (const json& claim : {json{{"spec", devices}}, json{{"spec", {{"spec", devices}}}}}) {
    const ClaimedDevices found = claimed_devices(claim);
    CHECK(found.all == test.all);
    CHECK(found.accelerators == test.accelerators);
  }
}

}  // namespace
}  // namespace sluice::api
