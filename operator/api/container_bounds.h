// What the LimitRanges of a namespace allow each container (type Container), and those of a pod together (type Pod).
// The API server refuses a pod beyond it.
//
// Source: Kubernetes' admission plugin LimitRanger.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/limit_range.h"
#include "src/kube/store.h"

namespace sluice::api {

// Of one resource. Several LimitRanges count by the tightest.
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

  // The same for a container beside others of its pod, which have `others` together. A container within them keeps
  // those of the pod, too, if the others do not break a ratio.
  ContainerBounds beside(const ContainerResources& others) const;

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

  // The containers of a pod together, filled in.
  ContainerResources together(const nlohmann::json& pod_spec) const;

  // What the containers of a pod have together that is not allowed, in the same way. `pod`: in words, as "a worker's
  // pod". Empty, too, for a pod with a request or a limit of its own (KEP-2837): servers count it differently.
  std::string objection_to_pod(const nlohmann::json& pod_spec, std::string_view pod) const;

 private:
  Bound millicores_;
  Bound memory_bytes_;
  Bound pod_millicores_;
  Bound pod_memory_bytes_;
  std::vector<kube::ObjectPointer> limit_ranges_;
};

// Those of the namespace.
std::vector<kube::ObjectPointer> limit_ranges_in(const kube::Store::Objects& limit_ranges,
                                                 const std::string& name_space);

}  // namespace sluice::api
