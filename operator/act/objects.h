// What all objects that the operator writes have in common, and how they are compared with what is there.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::act {

// Adds Sluice's labels to a metadata object.
void set_labels(nlohmann::json& metadata, std::string_view job, std::string_view component);

// Adds the annotations by which Prometheus finds feeder and worker pods.
void set_scraped(nlohmann::json& metadata);

// Metadata of a child: name, namespace, labels, and `owner` as the controlling owner, so that deletion cascades.
nlohmann::json child_metadata(const nlohmann::json& owner, std::string_view api_version, std::string_view kind,
                              std::string_view name, std::string_view job, std::string_view component);

// True if everything that `desired` says is so in `observed`; what the API server has added does not matter.
bool holds(const nlohmann::json& observed, const nlohmann::json& desired);

// `value` without members that are null: the API server drops them, so they would never compare equal.
nlohmann::json without_nulls(const nlohmann::json& value);

// At most `max_bytes` of `text`, never a part of a character: JSON must be UTF-8.
std::string cut_text(std::string_view text, std::size_t max_bytes);

// Short, stable digest of a template; valid as a label's value.
std::string template_hash(const nlohmann::json& pod_template);

}  // namespace sluice::act
