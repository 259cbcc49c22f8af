// A LimitRange of a namespace, as far as it fills in what a container leaves out.
#pragma once

#include <cstdint>

#include "operator/api/object.h"

namespace sluice::api {

inline constexpr kube::Resource kLimitRanges{"", "v1", "limitranges", "LimitRange"};

// What a container asks for; 0: it does not say.
struct ContainerResources {
  std::int64_t request_millicores = 0;
  std::int64_t request_memory_bytes = 0;
  std::int64_t limit_millicores = 0;
  std::int64_t limit_memory_bytes = 0;

  friend bool operator==(const ContainerResources&, const ContainerResources&) = default;
};

// Thread safety, missing fields: as Object.
class LimitRange : public Object {
 public:
  using Object::Object;

  // The same, with this namespace's defaults where nothing is said. Its bounds: container_bounds.h.
  ContainerResources filled_in(ContainerResources resources) const;
};

}  // namespace sluice::api
