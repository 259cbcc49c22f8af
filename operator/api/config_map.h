// A ConfigMap: texts by name.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/object.h"

namespace sluice::api {

// Of a ConfigMap as it was read; null where it has none.
inline const nlohmann::json& config_data(const nlohmann::json& config_map) { return member(config_map, "data"); }

// The server-side apply of that data.
inline nlohmann::json config_data_patch(nlohmann::json data) { return {{"data", std::move(data)}}; }

}  // namespace sluice::api
