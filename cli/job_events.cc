#include "cli/job_events.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/kube/json_member.h"

namespace sluice::cli {

using nlohmann::json;

std::vector<json> events_about(const std::vector<json>& objects, std::vector<json> events) {
  std::set<std::string> uids;
  for (const json& object : objects) uids.insert(kube::text_at(object, "metadata", "uid"));
  uids.erase("");
  std::erase_if(events, [&](const json& event) { return !uids.contains(kube::text_at(event, "regarding", "uid")); });
  return events;
}

std::string object_of(const json& event) {
  return kube::text_at(event, "regarding", "kind") + "/" + kube::text_at(event, "regarding", "name");
}

}  // namespace sluice::cli
