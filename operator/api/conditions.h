// status.conditions as Kubernetes' API conventions have them.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::api {

// A condition of an object as it was read. All empty where the object has no such condition.
struct SeenCondition {
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  std::string since;  // RFC 3339: when the status was another one last

  bool is_true() const { return status == "True"; }
  double since_seconds() const;  // Unix time; 0: it does not say
};

// The condition of that type in a list of conditions.
SeenCondition find_condition(const nlohmann::json& conditions, std::string_view type);

// Reason of Ready=False: the spec cannot be carried out, and the message names the field and the way out.
inline constexpr const char* kSpecRefused = "SpecRefused";

// Reason of WorkersBlocked=True: a worker's pod cannot have data that the trainer's has.
inline constexpr const char* kDataOnlyInTrainer = "DataOnlyInTrainer";

// Reason of a pool's Ready=False: workers come or go, and nothing keeps them.
inline constexpr const char* kScaling = "Scaling";

enum class Truth { kFalse, kTrue, kUnknown };

std::string_view text_of(Truth truth);  // "True", "False", "Unknown"

// A condition to be written.
struct Condition {
  std::string_view type;
  Truth status = Truth::kUnknown;
  std::string reason;  // CamelCase, not empty
  std::string message;
};

// The list to write: lastTransitionTime is kept where the status did not change, and is `now` where it did.
nlohmann::json render_conditions(const std::vector<Condition>& conditions, const nlohmann::json& previous,
                                 std::int64_t generation, std::string_view now);

}  // namespace sluice::api
