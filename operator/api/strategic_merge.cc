#include "operator/api/strategic_merge.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/api/object.h"

namespace sluice::api {
namespace {

using nlohmann::json;

struct MergedList {
  std::string_view name;
  std::string_view key;
  bool replaces_elements = false;
};
constexpr MergedList kMergedLists[] = {{"containers", "name"},
                                       {"initContainers", "name"},
                                       {"volumes", "name", true},
                                       {"imagePullSecrets", "name"},
                                       {"env", "name"},
                                       {"volumeMounts", "mountPath"},
                                       {"ports", "containerPort"},
                                       {"hostAliases", "ip"},
                                       {"resourceClaims", "name"},
                                       {"schedulingGates", "name"},
                                       {"volumeDevices", "devicePath"}};

void merge_list(json& base, const json& patch, const MergedList& list) {
  for (const json& element : patch) {
    const json& key = member(element, list.key);
    const auto same = std::find_if(base.begin(), base.end(),
                                   [&](const json& each) { return !key.is_null() && member(each, list.key) == key; });
    if (same == base.end())
      base.push_back(element);
    else if (list.replaces_elements)
      *same = element;
    else
      *same = strategic_merge(std::move(*same), element);
  }
}

void merge_member(json& base, const std::string& name, const json& patch) {
  if (patch.is_null()) {
    base.erase(name);
    return;
  }
  json& target = base[name];
  const auto list = std::find_if(std::begin(kMergedLists), std::end(kMergedLists),
                                 [&](const MergedList& each) { return each.name == name; });
  if (list != std::end(kMergedLists) && target.is_array() && patch.is_array())
    merge_list(target, patch, *list);
  else
    target = strategic_merge(std::move(target), patch);
}

}  // namespace

json strategic_merge(json base, const json& patch) {
  if (!patch.is_object()) return patch;
  if (!base.is_object()) base = json::object();
  for (const auto& [name, value] : patch.items()) merge_member(base, name, value);
  return base;
}

}  // namespace sluice::api
