#include "operator/act/objects.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "operator/names.h"
#include "operator/observe/fields.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;

void set_labels(json& metadata, std::string_view job, std::string_view component) {
  json& labels = metadata["labels"];
  if (!labels.is_object()) labels = json::object();
  labels[std::string(kJobLabel)] = job;
  labels[std::string(kComponentLabel)] = component;
  labels[std::string(kManagedByLabel)] = kOperatorManager;
  labels[std::string(kPartOfLabel)] = kPartOf;
}

void set_scraped(json& metadata) {
  json& annotations = metadata["annotations"];
  if (!annotations.is_object()) annotations = json::object();
  annotations["prometheus.io/scrape"] = "true";
  annotations["prometheus.io/port"] = std::to_string(kMetricsPort);
}

json child_metadata(const json& owner, std::string_view api_version, std::string_view kind, std::string_view name,
                    std::string_view job, std::string_view component) {
  json metadata = {{"name", name}, {"namespace", observe::text_field(owner, "/metadata/namespace")}};
  set_labels(metadata, job, component);
  metadata["ownerReferences"] = json::array({{{"apiVersion", api_version},
                                              {"kind", kind},
                                              {"name", observe::text_field(owner, "/metadata/name")},
                                              {"uid", observe::text_field(owner, "/metadata/uid")},
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

std::string cut_text(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

std::string template_hash(const json& pod_template) {
  // FNV-1a, 64 bits: a change has to be noticed, nobody has to be kept from forging one.
  std::uint64_t hash = 14695981039346656037u;
  for (const char byte : pod_template.dump()) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace sluice::act
