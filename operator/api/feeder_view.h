// The feeder of a trainer pod: the CPU that the pod's spec asks for, and the CPU that the kubelet runs it with. The two
// differ while a resize in place (KEP-1287) is under way, waits for room, or cannot be done.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace sluice::api {

// As in Kubernetes: the request is guaranteed, idle CPU of the node may be used up to the limit.
struct FeederCpu {
  std::int64_t request_millicores = 0;
  std::int64_t limit_millicores = 0;  // 0: none

  friend bool operator==(const FeederCpu&, const FeederCpu&) = default;
};

struct FeederView {
  enum class Resize { kDone, kUnderWay, kDeferred, kInfeasible };
  // A resize must not change it. A guaranteed pod has equal requests and limits, a best-effort one has neither.
  enum class QosClass { kBestEffort, kBurstable, kGuaranteed };

  FeederCpu wanted;    // by the pod's spec
  FeederCpu in_force;  // by its status; as wanted where the kubelet does not say
  Resize resize = Resize::kDone;
  std::string problem;  // the kubelet's words; empty unless deferred or infeasible
  QosClass qos_class = QosClass::kBurstable;
  // The pod has resources as a whole (spec.resources): Kubernetes up to 1.34 resizes none of its containers.
  bool pod_has_resources = false;
  // Kubelets before 1.33 do not tell what a running container has. The API server refuses every resize on their nodes.
  bool kubelet_resizes = true;

  bool can_be_resized() const { return qos_class != QosClass::kBestEffort && !pod_has_resources && kubelet_resizes; }

  // CPU that kube-scheduler keeps for the feeder: while a resize may still happen, the larger of the two requests.
  std::int64_t reserved_millicores() const;
};

// nullopt: the pod has no feeder.
std::optional<FeederView> view_feeder(const nlohmann::json& pod);

// The server-side apply of the pod's subresource "resize" that gives its feeder this CPU.
nlohmann::json resize_of_feeder(const FeederCpu& cpu);

}  // namespace sluice::api
