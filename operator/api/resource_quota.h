// A ResourceQuota of a namespace.
#pragma once

#include <cstdint>
#include <optional>

#include "operator/api/object.h"

namespace sluice::api {

inline constexpr kube::Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};

// Thread safety, missing fields: as Object.
class ResourceQuota : public Object {
 public:
  using Object::Object;

  // The amount that pods of the namespace may still request, by the status; never negative. nullopt: no bound.
  std::optional<std::int64_t> left_millicores() const;
  std::optional<std::int64_t> left_memory_bytes() const;
  std::optional<std::int64_t> left_pods() const;
  // The same of what pods may use at most.
  std::optional<std::int64_t> left_limit_millicores() const;
  std::optional<std::int64_t> left_limit_memory_bytes() const;
};

}  // namespace sluice::api
