#include "operator/api/accelerators.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "operator/api/fields.h"
#include "src/kube/quantity.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// Of the vendors that do not say "gpu". A Neuron device has a second name and further ones for its cores, which would
// count twice.
constexpr std::string_view kOtherResources[] = {"gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi",
                                                "aws.amazon.com/neuron", "google.com/tpu"};
constexpr std::string_view kWordsInKeys[] = {"gpu", "accelerator", "tpu", "neuron", "gaudi"};
constexpr std::string_view kDomainsOfKeys[] = {"nvidia.com/", "amd.com/", "habana.ai/"};

template <class Range>
bool any(const Range& range, const auto& holds) {
  return std::any_of(std::begin(range), std::end(range), holds);
}

bool is_accelerator(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == resource.npos) return false;
  const std::string_view name = resource.substr(slash + 1);
  return name.ends_with("gpu") || name.starts_with("gpu.") || name.starts_with("mig-") ||
         any(kOtherResources, [&](std::string_view other) { return resource == other; });
}

}  // namespace

std::map<std::string, std::int64_t> devices_in(const json& resource_list) {
  std::map<std::string, std::int64_t> devices;
  if (!resource_list.is_object()) return devices;
  for (const auto& [resource, amount] : resource_list.items())
    if (resource.find('/') != resource.npos)
      devices[resource] = std::min(
          kube::parse_bytes(amount.is_string() ? amount.get<std::string>() : amount.dump()).value_or(0), kMostDevices);
  return devices;
}

std::int64_t accelerators_in(const json& resource_list) {
  std::int64_t count = 0;
  for (const auto& [resource, amount] : devices_in(resource_list))
    if (is_accelerator(resource)) count += amount;
  return count;
}

std::int64_t accelerators_of_pod(const json& pod_spec) {
  std::int64_t count = 0;
  std::set<std::string> claims;
  for (const json& container : list_field(pod_spec, "/containers")) {
    count += accelerators_in(field(container, "/resources/limits"));
    for (const json& claim : list_field(container, "/resources/claims")) claims.insert(text_field(claim, "/name"));
  }
  return count > 0 ? std::min(count, kMostDevices) : static_cast<std::int64_t>(claims.size());
}

std::int64_t accelerators_of_container(const json& container) {
  const std::int64_t count = accelerators_in(field(container, "/resources/limits"));
  return count > 0 ? count : static_cast<std::int64_t>(list_field(container, "/resources/claims").size());
}

bool tells_of_accelerators(std::string_view key) {
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char each) { return std::tolower(each); });
  return any(kWordsInKeys, [&](std::string_view word) { return lower.find(word) != lower.npos; }) ||
         any(kDomainsOfKeys, [&](std::string_view domain) { return lower.starts_with(domain); });
}

}  // namespace sluice::api
