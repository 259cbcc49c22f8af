// A short name for a JSON value.
//
// Thread safety: a pure function.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sluice::api {

// Sixteen hexadecimal digits: enough to notice a change, not to prevent forgery.
std::string fingerprint(const nlohmann::json& value);

}  // namespace sluice::api
