#include "src/kube/fake/pod_resize.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/kube/json_member.h"
#include "src/kube/quantity.h"

namespace sluice::kube::fake {
namespace {

constexpr const char* kLists[] = {"initContainers", "containers"};
constexpr const char* kResourceLists[] = {"requests", "limits"};

std::string text_of(const Json& quantity) {
  return quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
}

// CPU in millicores, memory in bytes; 0 where nothing is said.
std::int64_t amount(const Json& container, const std::string& bound, const std::string& resource) {
  const Json& quantity = value_at(container, "/resources/" + bound + "/" + resource);
  if (quantity.is_null()) return 0;
  return (resource == "cpu" ? parse_millicores(text_of(quantity)) : parse_bytes(text_of(quantity))).value_or(0);
}

const Json* find(const Json& containers, const Json& name) {
  if (!containers.is_array()) return nullptr;
  const auto found = std::find_if(containers.begin(), containers.end(),
                                  [&](const Json& container) { return container.value("name", Json()) == name; });
  return found == containers.end() ? nullptr : &*found;
}

void check_container(const Json& before, const Json& after, const std::string& place, std::vector<Violation>& found) {
  for (const std::string bound : kResourceLists) {
    const Json& limits = value_at(before, "/resources/" + bound);
    if (!limits.is_object()) continue;
    for (const auto& [resource, quantity] : limits.items())
      if (value_at(after, "/resources/" + bound + "/" + resource).is_null())
        found.push_back({place + ".resources." + bound, "FieldValueForbidden",
                         "Forbidden: resource " + bound + " cannot be removed"});
  }
  for (const std::string resource : {"cpu", "memory"}) {
    const std::int64_t limit = amount(after, "limits", resource);
    if (limit > 0 && amount(after, "requests", resource) > limit)
      found.push_back({place + ".resources.requests", "FieldValueInvalid",
                       "Invalid value: must be less than or equal to " + resource + " limit of " +
                           text_of(value_at(after, "/resources/limits/" + resource))});
  }
}

}  // namespace

std::string qos_class(const Json& pod) {
  bool any = false;
  bool all_fixed = true;
  for (const std::string list : kLists)
    for (const Json& container : value_at(pod, "/spec/" + list))
      for (const std::string resource : {"cpu", "memory"}) {
        const std::int64_t limit = amount(container, "limits", resource);
        const std::int64_t request = amount(container, "requests", resource);
        any = any || limit > 0 || request > 0;
        all_fixed = all_fixed && limit > 0 && (request == 0 || request == limit);
      }
  if (!any) return "BestEffort";
  return all_fixed ? "Guaranteed" : "Burstable";
}

Json resizable_part(const Json& pod) {
  Json part = Json::object();
  for (const std::string list : kLists) {
    const Json& containers = value_at(pod, "/spec/" + list);
    if (!containers.is_array()) continue;
    for (const Json& container : containers) {
      Json kept = Json::object();
      for (const char* member : {"name", "resources"})
        if (container.contains(member)) kept[member] = container[member];
      part["spec"][list].push_back(std::move(kept));
    }
  }
  return part;
}

Json resized(const Json& pod, const Json& wanted) {
  Json after = pod;
  for (const std::string list : kLists) {
    if (!value_at(pod, "/spec/" + list).is_array()) continue;
    for (Json& container : after["spec"][list])
      if (const Json* change = find(value_at(wanted, "/spec/" + list), container.value("name", Json()));
          change != nullptr && change->contains("resources"))
        container["resources"] = change->at("resources");
  }
  return after;
}

std::vector<Violation> check_resize(const Json& pod, const Json& wanted) {
  std::vector<Violation> found;
  const Json after = resized(pod, wanted);
  for (const std::string list : kLists) {
    const Json& containers = value_at(pod, "/spec/" + list);
    for (const Json& change : value_at(wanted, "/spec/" + list))
      if (find(containers, change.value("name", Json())) == nullptr)
        found.push_back(
            {"spec." + list, "FieldValueForbidden", "Forbidden: " + list + " may not be added or removed on resize"});
    for (std::size_t index = 0; index < containers.size(); ++index) {
      const Json& container = after["spec"][list][index];
      check_container(containers[index], container, "spec." + list + "[" + std::to_string(index) + "]", found);
      const bool ends_before = list == "initContainers" && container.value("restartPolicy", "") != "Always";
      if (ends_before && container != containers[index])
        found.push_back(
            {"spec", "FieldValueForbidden", "Forbidden: resources for non-sidecar init containers are immutable"});
    }
  }
  if (const std::string before = qos_class(pod); qos_class(after) != before)
    found.push_back({"spec", "FieldValueInvalid",
                     "Invalid value: \"" + before + "\": Pod QOS Class may not change as a result of resizing"});
  return found;
}

}  // namespace sluice::kube::fake
