#include "operator/api/resource_quota.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/api/fields.h"

namespace sluice::api {
namespace {

using Reader = std::int64_t (*)(const nlohmann::json& object, std::string_view pointer);

// The tightest of the names that a quota may give to one thing.
std::optional<std::int64_t> left(const nlohmann::json& quota, Reader read, std::initializer_list<const char*> names) {
  std::optional<std::int64_t> least;
  for (const std::string name : names) {
    if (field(quota, "/status/hard/" + name).is_null()) continue;
    const std::int64_t rest =
        std::max<std::int64_t>(read(quota, "/status/hard/" + name) - read(quota, "/status/used/" + name), 0);
    least = std::min(least.value_or(rest), rest);
  }
  return least;
}

// One requirement of spec.scopeSelector; a scope in spec.scopes is one that must exist.
struct Scope {
  std::string name;
  std::string matching;  // operator
  std::vector<std::string> values;
};

std::vector<Scope> scopes_of(const nlohmann::json& quota) {
  std::vector<Scope> scopes;
  for (const nlohmann::json& name : list_field(quota, "/spec/scopes"))
    if (name.is_string()) scopes.push_back({name.get<std::string>(), "Exists", {}});
  for (const nlohmann::json& said : list_field(quota, "/spec/scopeSelector/matchExpressions")) {
    Scope scope{text_field(said, "/scopeName"), text_field(said, "/operator"), {}};
    for (const nlohmann::json& value : list_field(said, "/values"))
      if (value.is_string()) scope.values.push_back(value.get<std::string>());
    scopes.push_back(std::move(scope));
  }
  return scopes;
}

bool admits_class(const Scope& scope, std::string_view priority_class) {
  const bool named = std::find(scope.values.begin(), scope.values.end(), priority_class) != scope.values.end();
  if (scope.matching == "In") return named;
  if (scope.matching == "NotIn") return !named;
  return (scope.matching == "DoesNotExist") == priority_class.empty();
}

}  // namespace

// One that we do not know bounds the workers: too few of them are better than pods that are refused in a row.
bool ResourceQuota::counts_workers(std::string_view priority_class) const {
  const std::vector<Scope> scopes = scopes_of(object());
  return std::all_of(scopes.begin(), scopes.end(), [&](const Scope& scope) {
    if (scope.name == "PriorityClass") return admits_class(scope, priority_class);
    return scope.name != "Terminating" && scope.name != "BestEffort" && scope.name != "CrossNamespacePodAffinity";
  });
}

std::optional<std::int64_t> ResourceQuota::left_millicores() const {
  return left(object(), millicores_field, {"requests.cpu", "cpu"});
}

std::optional<std::int64_t> ResourceQuota::left_memory_bytes() const {
  return left(object(), bytes_field, {"requests.memory", "memory"});
}

std::optional<std::int64_t> ResourceQuota::left_limit_millicores() const {
  return left(object(), millicores_field, {"limits.cpu"});
}

std::optional<std::int64_t> ResourceQuota::left_limit_memory_bytes() const {
  return left(object(), bytes_field, {"limits.memory"});
}

std::optional<std::int64_t> ResourceQuota::left_pods() const {
  const auto thousandths = left(object(), millicores_field, {"pods", "count~1pods"});
  if (!thousandths) return std::nullopt;
  return *thousandths / 1000;
}

}  // namespace sluice::api
