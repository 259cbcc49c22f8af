#include "operator/api/conditions.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "src/base/utf8.h"

namespace sluice::api {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxMessageBytes = 1024;

}  // namespace

double SeenCondition::since_seconds() const { return unix_seconds(since); }

SeenCondition find_condition(const json& conditions, std::string_view type) {
  for (const json& condition : list_field(conditions, ""))
    if (const json& said = field(condition, "/type"); said.is_string() && said.get_ref<const std::string&>() == type)
      return {text_field(condition, "/status"), text_field(condition, "/reason"), text_field(condition, "/message"),
              text_field(condition, "/lastTransitionTime")};
  return {};
}

std::string_view text_of(Truth truth) {
  if (truth == Truth::kTrue) return "True";
  return truth == Truth::kFalse ? "False" : "Unknown";
}

json render_conditions(const std::vector<Condition>& conditions, const json& previous, std::int64_t generation,
                       std::string_view now) {
  json rendered = json::array();
  for (const Condition& condition : conditions) {
    const SeenCondition before = find_condition(previous, condition.type);
    const bool same = before.status == text_of(condition.status);
    rendered.push_back({{"type", condition.type},
                        {"status", text_of(condition.status)},
                        {"reason", condition.reason},
                        {"message", cut_text(condition.message, kMaxMessageBytes)},
                        {"observedGeneration", generation},
                        {"lastTransitionTime", same ? before.since : std::string(now)}});
  }
  return rendered;
}

}  // namespace sluice::api
