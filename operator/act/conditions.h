// status.conditions as Kubernetes' API conventions have them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::act {

enum class Truth { kFalse, kTrue, kUnknown };

std::string_view text_of(Truth truth);  // "True", "False", "Unknown"

struct Condition {
  std::string_view type;
  Truth status = Truth::kUnknown;
  std::string reason;  // CamelCase, not empty
  std::string message;
};

// The list to write: lastTransitionTime is kept where the status did not change, and is `now` where it did.
nlohmann::json render_conditions(const std::vector<Condition>& conditions, const nlohmann::json& previous,
                                 std::int64_t generation, std::string_view now);

// "True", "False", "Unknown"; "" where status.conditions of the object has no such condition.
std::string condition_status(const nlohmann::json& object, std::string_view type);

}  // namespace sluice::act
