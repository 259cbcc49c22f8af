#include "operator/api/node.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/accelerators.h"
#include "operator/api/fields.h"
#include "operator/api/labels.h"

namespace sluice::api {

std::int64_t Node::allocatable_millicores() const { return millicores_field(object(), "/status/allocatable/cpu"); }

std::optional<std::int64_t> Node::allocatable_memory_bytes() const {
  if (field(object(), "/status/allocatable/memory").is_null()) return std::nullopt;
  return bytes_field(object(), "/status/allocatable/memory");
}

std::string Node::instance_type() const { return label(kInstanceTypeLabel); }

bool Node::spot() const {
  return std::any_of(std::begin(kSpotLabels), std::end(kSpotLabels),
                     [&](const auto& spot) { return label(spot.name) == spot.value; });
}

int Node::gpus() const { return static_cast<int>(accelerators_in(field(object(), "/status/allocatable"))); }

bool Node::schedulable() const { return !boolean_field(object(), "/spec/unschedulable") && condition_is_true("Ready"); }

std::map<std::string, std::int64_t> Node::devices() const { return devices_in(field(object(), "/status/allocatable")); }

std::vector<Taint> Node::repelling_taints() const {
  std::vector<Taint> taints;
  for (const nlohmann::json& taint : list_field(object(), "/spec/taints"))
    if (const std::string effect = text_field(taint, "/effect"); effect == "NoSchedule" || effect == "NoExecute")
      taints.push_back({text_field(taint, "/key"), text_field(taint, "/value"), effect});
  return taints;
}

std::optional<std::string> Node::label_if_any(const std::string& name) const {
  const nlohmann::json& labels = field(object(), "/metadata/labels");
  const auto found = labels.is_object() ? labels.find(name) : labels.end();
  if (found == labels.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace sluice::api
