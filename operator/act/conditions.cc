#include "operator/act/conditions.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/observe/fields.h"

namespace sluice::act {

using nlohmann::json;
using observe::text_field;

namespace {

constexpr std::size_t kMaxMessageBytes = 1024;

const json* find_condition(const json& conditions, std::string_view type) {
  if (!conditions.is_array()) return nullptr;
  for (const json& condition : conditions)
    if (text_field(condition, "/type") == type) return &condition;
  return nullptr;
}

}  // namespace

std::string_view text_of(Truth truth) {
  if (truth == Truth::kTrue) return "True";
  return truth == Truth::kFalse ? "False" : "Unknown";
}

json render_conditions(const std::vector<Condition>& conditions, const json& previous, std::int64_t generation,
                       std::string_view now) {
  json rendered = json::array();
  for (const Condition& condition : conditions) {
    const json* before = find_condition(previous, condition.type);
    const bool same = before && text_field(*before, "/status") == text_of(condition.status);
    rendered.push_back({{"type", condition.type},
                        {"status", text_of(condition.status)},
                        {"reason", condition.reason},
                        {"message", cut_text(condition.message, kMaxMessageBytes)},
                        {"observedGeneration", generation},
                        {"lastTransitionTime", same ? text_field(*before, "/lastTransitionTime") : std::string(now)}});
  }
  return rendered;
}

std::string condition_status(const json& object, std::string_view type) {
  const json* condition = find_condition(observe::field(object, "/status/conditions"), type);
  return condition ? text_field(*condition, "/status") : "";
}

}  // namespace sluice::act
