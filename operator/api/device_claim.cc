#include "operator/api/device_claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/api/accelerators.h"
#include "operator/api/fields.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// Classes of vendors that say neither "gpu" nor another word for accelerators, such as mig.nvidia.com.
constexpr std::string_view kVendors[] = {".nvidia.com", ".amd.com", ".habana.ai"};

// As an API server bounds it: more devices than that are in no claim.
constexpr std::int64_t kMostInClaim = 1000;

bool is_class_of_accelerators(const std::string& device_class) {
  return tells_of_accelerators(device_class) ||
         std::any_of(std::begin(kVendors), std::end(kVendors),
                     [&](std::string_view vendor) { return device_class.ends_with(vendor); });
}

void add(ClaimedDevices& sum, const json& request) {
  const std::int64_t count = std::clamp<std::int64_t>(integer_field(request, "/count", 1), 1, kMostInClaim);
  sum.all += count;
  if (is_class_of_accelerators(text_field(request, "/deviceClassName"))) sum.accelerators += count;
}

}  // namespace

std::vector<DeviceClaim> device_claims_of_pod(const json& pod_spec) {
  std::vector<DeviceClaim> claims;
  for (const json& container : list_field(pod_spec, "/containers")) {
    if (accelerators_in(field(container, "/resources/limits")) > 0) return {};
    for (const json& used : list_field(container, "/resources/claims")) {
      const std::string name = text_field(used, "/name");
      for (const json& entry : list_field(pod_spec, "/resourceClaims")) {
        if (text_field(entry, "/name") != name) continue;
        DeviceClaim claim{text_field(entry, "/resourceClaimName")};
        if (claim.name.empty()) claim = {text_field(entry, "/resourceClaimTemplateName"), true};
        if (!claim.name.empty() && std::find(claims.begin(), claims.end(), claim) == claims.end())
          claims.push_back(std::move(claim));
      }
    }
  }
  return claims;
}

ClaimedDevices claimed_devices(const json& claim) {
  const bool is_template = field(claim, "/spec/spec").is_object();
  ClaimedDevices sum;
  for (const json& request :
       list_field(claim, is_template ? "/spec/spec/devices/requests" : "/spec/devices/requests")) {
    const json& alternatives = list_field(request, "/firstAvailable");
    add(sum, alternatives.empty() ? field(request, "/exactly") : alternatives.front());
  }
  return sum;
}

}  // namespace sluice::api
