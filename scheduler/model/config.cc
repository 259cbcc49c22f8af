#include "scheduler/model/config.h"

#include <array>
#include <string>
#include <utility>

namespace sluice::scheduler {
namespace {

constexpr std::array<std::pair<Objective, std::string_view>, 5> kObjectives = {
    {{Objective::kBalanced, "balanced"},
     {Objective::kThroughput, "throughput"},
     {Objective::kCompletionTime, "completion-time"},
     {Objective::kFair, "fair"},
     {Objective::kCost, "cost"}}};

}  // namespace

std::string_view to_string(Objective objective) {
  for (const auto& [value, name] : kObjectives)
    if (value == objective) return name;
  return "balanced";
}

Result<Objective> parse_objective(std::string_view text) {
  std::string known;
  for (const auto& [value, name] : kObjectives) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return Error(ErrorCode::kInvalidArgument, "there is no objective \"" + std::string(text) + "\"; there are " + known);
}

}  // namespace sluice::scheduler
