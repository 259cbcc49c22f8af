#include "operator/api/resource_quota.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

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

}  // namespace

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
