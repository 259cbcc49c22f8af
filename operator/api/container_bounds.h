// What the LimitRanges of a namespace allow each container. The API server refuses a pod with a container beyond it.
//
// Source: Kubernetes' admission plugin LimitRanger. Bounds of whole pods (type Pod) are not looked at.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/limit_range.h"
#include "src/kube/store.h"

namespace sluice::api {

// Of one container and one resource. Several LimitRanges count by the tightest.
struct Bound {
  std::int64_t least = 0;            // request and limit
  std::optional<std::int64_t> most;  // limit and request
  std::optional<double> ratio;       // limit by request, at most
};

class ContainerBounds {
 public:
  ContainerBounds() = default;

  // `limit_ranges`: all of one namespace.
  explicit ContainerBounds(std::span<const kube::ObjectPointer> limit_ranges);

  const Bound& millicores() const { return millicores_; }
  const Bound& memory_bytes() const { return memory_bytes_; }

  // What the API server makes of it: a request that is not said is the limit; then the namespace's defaults.
  ContainerResources filled_in(ContainerResources resources) const;

  // The nearest that is allowed; a limit too large for its request raises the request. What is not said stays so, but
  // where a bound wants it said. Bounds that contradict each other are kept as far as possible.
  ContainerResources fitted(ContainerResources resources) const;

  bool allow(const ContainerResources& resources) const { return fitted(resources) == resources; }

  // What of `resources`, filled in, is not allowed, with its value, and the way out, in a clause; empty: nothing.
  // `path`: of the field, as "spec.feeder.resources".
  std::string objection(const ContainerResources& resources, std::string_view path) const;

 private:
  Bound millicores_;
  Bound memory_bytes_;
  std::vector<kube::ObjectPointer> limit_ranges_;
};

// Those of the namespace.
std::vector<kube::ObjectPointer> limit_ranges_in(const kube::Store::Objects& limit_ranges,
                                                 const std::string& name_space);

}  // namespace sluice::api
