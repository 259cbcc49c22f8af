// Reading of untrusted JSON objects: a missing or wrongly typed field is the fallback, never an exception. For the
// readers of this folder, which know the paths, and for tests.
//
// Thread safety: pure functions. References point into the object given and live as long as it does.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace sluice::api {

// The value at "/metadata/name", or a null value if any step of the way is missing. A slash within a key is written
// "~1", as in RFC 6901.
const nlohmann::json& field(const nlohmann::json& object, std::string_view pointer);

std::string text_field(const nlohmann::json& object, std::string_view pointer, std::string_view fallback = "");
std::int64_t integer_field(const nlohmann::json& object, std::string_view pointer, std::int64_t fallback = 0);
bool boolean_field(const nlohmann::json& object, std::string_view pointer, bool fallback = false);

// Unix seconds of an RFC 3339 time; 0 where there is none.
double unix_seconds(std::string_view time);
double time_field(const nlohmann::json& object, std::string_view pointer);

// 512 TiB, or 5 * 10^11 cores: what others write beyond it counts as this, so that ten thousand pods of it are no
// overflow.
inline constexpr std::int64_t kMostOfQuantity = std::int64_t{1} << 49;

// A quantity of CPU, which may be written as a number. 0 where there is none, or a value that the API server would
// refuse.
std::int64_t millicores_field(const nlohmann::json& object, std::string_view pointer);

// A quantity of memory in bytes, as above.
std::int64_t bytes_field(const nlohmann::json& object, std::string_view pointer);

// The elements of the array at `pointer`; an empty array where there is none.
const nlohmann::json& list_field(const nlohmann::json& object, std::string_view pointer);

}  // namespace sluice::api
