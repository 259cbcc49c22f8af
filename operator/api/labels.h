// Labels and annotations; docs/designs/protocols.md, section 2, is their contract.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace sluice::api {

inline constexpr std::string_view kJobLabel = "sluice.dev/job";
inline constexpr std::string_view kComponentLabel = "sluice.dev/component";
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kPartOfLabel = "app.kubernetes.io/part-of";
inline constexpr std::string_view kTrainerComponent = "trainer";
inline constexpr std::string_view kWorkerComponent = "worker";
inline constexpr std::string_view kPartOf = "sluice";
// On a worker pod: which version of the pool's template it was made from.
inline constexpr std::string_view kTemplateHashLabel = "sluice.dev/template-hash";

// On the pool: of which worker template it was made. Fields that left the template do not show otherwise.
inline constexpr std::string_view kAppliedTemplateAnnotation = "sluice.dev/applied-template";
// On a pool: the number of workers that the scheduler set last. Another number in spec.replicas is a person's or
// another controller's.
inline constexpr std::string_view kPlannedWorkersAnnotation = "sluice.dev/planned-workers";
// On the trainer's Job: "true" when its pods carry a feeder. A Job's template cannot change, spec.mode can.
inline constexpr std::string_view kFeederAnnotation = "sluice.dev/feeder";
// On the trainer's Job: the spec.suspend that the operator asked for last. Another one in its spec is a person's or
// another controller's.
inline constexpr std::string_view kSuspendAnnotation = "sluice.dev/suspend";
// On the trainer's Job: how often all trainer pods had been started again when it was made.
inline constexpr std::string_view kRestartsAnnotation = "sluice.dev/restarts";
// Kueue's, by which it queues the trainer's Job: taken over from the TrainingJob.
inline constexpr std::string_view kQueueLabels[] = {"kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"};
// By these Prometheus finds feeder and worker pods.
inline constexpr std::string_view kScrapeAnnotation = "prometheus.io/scrape";
inline constexpr std::string_view kScrapePortAnnotation = "prometheus.io/port";
// A cluster autoscaler may take the pod's node away, although the pod has an emptyDir and an owner it does not know.
inline constexpr std::string_view kSafeToEvictAnnotation = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// On a TrainingJob, by its user: jobs with another value are not taken for alike.
inline constexpr std::string_view kLikeLabel = "sluice.dev/like";
// On a TrainingJob: Kueue admits its trainer.
inline constexpr std::string_view kKueueQueueLabel = "kueue.x-k8s.io/queue-name";
struct LabelValue {
  std::string_view name;
  std::string_view value;
};
// On nodes, by their kubelets. Windows nodes are amd64, too, and few clusters taint them.
inline constexpr std::string_view kArchitectureLabel = "kubernetes.io/arch";
inline constexpr LabelValue kLinux{"kubernetes.io/os", "linux"};
// On nodes, by their clouds.
inline constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";
inline constexpr LabelValue kSpotLabels[] = {{"karpenter.sh/capacity-type", "spot"},
                                             {"eks.amazonaws.com/capacityType", "SPOT"},
                                             {"cloud.google.com/gke-spot", "true"},
                                             {"cloud.google.com/gke-preemptible", "true"},
                                             {"kubernetes.azure.com/scalesetpriority", "spot"}};
// On pods, by tools that add containers of their own: the one that people mean.
inline constexpr std::string_view kDefaultContainerAnnotation = "kubectl.kubernetes.io/default-container";
// Which rank of an indexed Job a pod is; the Job controller sets it.
inline constexpr std::string_view kCompletionIndexAnnotation = "batch.kubernetes.io/job-completion-index";

}  // namespace sluice::api
