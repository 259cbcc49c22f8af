// JSON texts that an API server would send, in one line each.
#pragma once

#include <initializer_list>
#include <string>

#include <nlohmann/json.hpp>

#include "src/kube/resource.h"

namespace sluice::kube::testing {

inline Json pod(const std::string& name, int resource_version, const std::string& uid = "") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"namespace", "ns"},
            {"name", name},
            {"uid", uid.empty() ? "uid-" + name : uid},
            {"resourceVersion", std::to_string(resource_version)},
            {"managedFields", Json::array({{{"manager", "somebody"}}})}}}};
}

inline std::string list_of(std::initializer_list<Json> items, int resource_version, const std::string& next = "") {
  Json list{{"kind", "PodList"}, {"metadata", {{"resourceVersion", std::to_string(resource_version)}}}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  list["items"] = Json::array();
  for (Json item : items) {
    item.erase("kind");
    item.erase("apiVersion");
    list["items"].push_back(item);
  }
  return list.dump();
}

inline std::string event(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

inline std::string bookmark(int resource_version) {
  return event("BOOKMARK", {{"metadata", {{"resourceVersion", std::to_string(resource_version)}}}});
}

inline Json status(int code, const std::string& reason, const std::string& message = "because") {
  return {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}};
}

}  // namespace sluice::kube::testing
