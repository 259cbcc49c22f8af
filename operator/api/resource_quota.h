// A ResourceQuota of a namespace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "operator/api/object.h"

namespace sluice::api {

inline constexpr kube::Resource kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};

// Thread safety, missing fields: as Object.
class ResourceQuota : public Object {
 public:
  using Object::Object;

  // Whether pods of data workers with this PriorityClass (empty: none) count against it, by its scopes. They request
  // CPU and have no deadline.
  bool counts_workers(std::string_view priority_class) const;

  // The amount that pods of the namespace may still request, by the status; never negative. nullopt: no bound.
  std::optional<std::int64_t> left_millicores() const;
  std::optional<std::int64_t> left_memory_bytes() const;
  std::optional<std::int64_t> left_pods() const;
  // The same of what pods may use at most.
  std::optional<std::int64_t> left_limit_millicores() const;
  std::optional<std::int64_t> left_limit_memory_bytes() const;
};

}  // namespace sluice::api
