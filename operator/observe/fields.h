// Reading of untrusted JSON objects: a missing or wrongly typed field is the fallback, never an exception.
//
// Thread safety: pure functions. References point into the object given and live as long as it does.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::observe {

// The value at "/metadata/name", or a null value if any step of the way is missing. A slash within a key is written
// "~1", as in RFC 6901.
const nlohmann::json& field(const nlohmann::json& object, std::string_view pointer);

std::string text_field(const nlohmann::json& object, std::string_view pointer, std::string_view fallback = "");
std::int64_t integer_field(const nlohmann::json& object, std::string_view pointer, std::int64_t fallback = 0);
bool boolean_field(const nlohmann::json& object, std::string_view pointer, bool fallback = false);

// A quantity of CPU, which may be written as a number. 0 where there is none, or what the API server would not let in.
std::int64_t millicores_field(const nlohmann::json& object, std::string_view pointer);

// True if status.conditions holds `type` with status "True".
bool condition_is_true(const nlohmann::json& object, std::string_view type);

// "namespace/name".
std::string object_key(const nlohmann::json& object);

// True if `child`'s controlling owner is `owner` itself: same uid, not merely the same name.
bool controlled_by(const nlohmann::json& child, const nlohmann::json& owner);

}  // namespace sluice::observe
