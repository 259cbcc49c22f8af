// The common parts of all objects that the operator writes, and their comparison with the stored ones.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "operator/api/object.h"

namespace sluice::act {

// Adds Sluice's labels to a metadata object.
void set_labels(nlohmann::json& metadata, std::string_view job, std::string_view component);

// Adds the annotations by which Prometheus finds feeder and worker pods, and their port.
void set_scraped(nlohmann::json& metadata, int port);

// Metadata of a child: name, namespace, labels, and `owner` as the controlling owner, so that deletion cascades.
nlohmann::json child_metadata(const api::Object& owner, std::string_view api_version, std::string_view kind,
                              std::string_view name, std::string_view job, std::string_view component);

// True if `observed` has every value of `desired`; values that the API server has added do not matter.
bool holds(const nlohmann::json& observed, const nlohmann::json& desired);

// `value` without members that are null: the API server drops them, so they would never compare equal.
nlohmann::json without_nulls(const nlohmann::json& value);

}  // namespace sluice::act
