#include "cli/job_events.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace sluice::cli {
namespace {

using nlohmann::json;

// Empty where the member is absent or no text: nothing that is read may end the program.
std::string text_at(const json& object, const char* pointer) {
  const json::json_pointer path(pointer);
  return object.contains(path) && object.at(path).is_string() ? object.at(path).get<std::string>() : std::string();
}

}  // namespace

std::vector<json> events_about(const std::vector<json>& objects, std::vector<json> events) {
  std::set<std::string> uids;
  for (const json& object : objects) uids.insert(text_at(object, "/metadata/uid"));
  uids.erase("");
  std::erase_if(events, [&](const json& event) { return !uids.contains(text_at(event, "/regarding/uid")); });
  return events;
}

std::string object_of(const json& event) {
  return text_at(event, "/regarding/kind") + "/" + text_at(event, "/regarding/name");
}

}  // namespace sluice::cli
