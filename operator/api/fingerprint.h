// A short name for a JSON value.
//
// Thread safety: a pure function.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sluice::api {

// Sixteen hexadecimal digits: enough to notice a change, not to prevent forgery.
std::string fingerprint(const nlohmann::json& value);

// Of the array of these values, which are not copied for it.
std::string fingerprint_of_array(std::initializer_list<const nlohmann::json*> values);

}  // namespace sluice::api
