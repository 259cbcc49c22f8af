#include "operator/act/objects.h"

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/object.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

void set_labels(json& metadata, std::string_view job, std::string_view component) {
  json& labels = metadata["labels"];
  if (!labels.is_object()) labels = json::object();
  labels[std::string(kJobLabel)] = job;
  labels[std::string(kComponentLabel)] = component;
  labels[std::string(kManagedByLabel)] = kOperatorManager;
  labels[std::string(kPartOfLabel)] = kPartOf;
}

void set_scraped(json& metadata, int port) {
  json& annotations = metadata["annotations"];
  if (!annotations.is_object()) annotations = json::object();
  // A user's path or scheme, for metrics at another port, would be asked of ours.
  const std::string_view domain = kScrapeAnnotation.substr(0, kScrapeAnnotation.find('/') + 1);
  for (auto each = annotations.begin(); each != annotations.end();)
    each = each.key().starts_with(domain) ? annotations.erase(each) : std::next(each);
  annotations[std::string(kScrapeAnnotation)] = "true";
  annotations[std::string(kScrapePortAnnotation)] = std::to_string(port);
}

json child_metadata(const Object& owner, std::string_view api_version, std::string_view kind, std::string_view name,
                    std::string_view job, std::string_view component) {
  json metadata = {{"name", name}, {"namespace", owner.name_space()}};
  set_labels(metadata, job, component);
  metadata["ownerReferences"] = json::array({{{"apiVersion", api_version},
                                              {"kind", kind},
                                              {"name", owner.name()},
                                              {"uid", owner.uid()},
                                              {"controller", true}}});
  return metadata;
}

bool holds(const json& observed, const json& desired) {
  if (desired.is_object()) {
    if (!observed.is_object()) return desired.empty();
    for (const auto& [key, value] : desired.items()) {
      const auto found = observed.find(key);
      // The API server drops empty objects and lists in some places.
      if (found == observed.end() ? !(value.is_structured() && value.empty()) : !holds(*found, value)) return false;
    }
    return true;
  }
  if (desired.is_array()) {
    if (!observed.is_array() || observed.size() != desired.size()) return false;
    for (std::size_t index = 0; index < desired.size(); ++index)
      if (!holds(observed[index], desired[index])) return false;
    return true;
  }
  return observed == desired;
}

json without_nulls(const json& value) {
  if (value.is_object()) {
    json result = json::object();
    for (const auto& [key, member] : value.items())
      if (!member.is_null()) result[key] = without_nulls(member);
    return result;
  }
  if (value.is_array()) {
    json result = json::array();
    for (const json& element : value) result.push_back(without_nulls(element));
    return result;
  }
  return value;
}

}  // namespace sluice::act
