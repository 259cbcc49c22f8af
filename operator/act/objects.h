// Comparison of what the operator would write with what is stored.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::act {

// True if `observed` has every value of `desired`; values that the API server has added do not matter.
bool holds(const nlohmann::json& observed, const nlohmann::json& desired);

// `value` without members that are null: the API server drops them, so they would never compare equal.
nlohmann::json without_nulls(nlohmann::json value);

}  // namespace sluice::act
