// The names that Sluice's objects carry in the cluster; docs/designs/first-slice.md, section 2, is their contract.
//
// Everything is derived from the TrainingJob's name, so that creating a child twice meets the first one.
// Thread safety: constants and pure functions.
#pragma once

#include <string>
#include <string_view>

namespace sluice::control {

inline constexpr std::string_view kApiVersion = "sluice.dev/v1alpha1";
inline constexpr std::string_view kTrainingJobKind = "TrainingJob";
inline constexpr std::string_view kPoolKind = "DataWorkerPool";

inline constexpr std::string_view kJobLabel = "sluice.dev/job";
inline constexpr std::string_view kComponentLabel = "sluice.dev/component";
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kPartOfLabel = "app.kubernetes.io/part-of";
inline constexpr std::string_view kTrainerComponent = "trainer";
inline constexpr std::string_view kWorkerComponent = "worker";
inline constexpr std::string_view kPartOf = "sluice";
// On a worker pod: which version of the pool's template it was made from.
inline constexpr std::string_view kTemplateHashLabel = "sluice.dev/template-hash";
// On the pool: of which worker template it was made. What the template no longer says does not show otherwise.
inline constexpr std::string_view kAppliedTemplateAnnotation = "sluice.dev/applied-template";
// On the trainer's Job: "true" when its pods carry a feeder. A Job's template cannot change, spec.mode can.
inline constexpr std::string_view kFeederAnnotation = "sluice.dev/feeder";
// On a pool: the number of workers that the scheduler set last. Another number in spec.replicas is somebody else's.
inline constexpr std::string_view kPlannedWorkersAnnotation = "sluice.dev/planned-workers";

// Field manager of everything the operator writes ...
inline constexpr std::string_view kOperatorManager = "sluice-operator";
// ... but DataWorkerPool.spec.replicas, which an autoscaler or a person may take over.
inline constexpr std::string_view kSchedulerManager = "sluice-scheduler";

inline constexpr std::string_view kBundleContainer = "sluice-bundle";
inline constexpr std::string_view kFeederContainer = "sluice-feeder";
inline constexpr std::string_view kWorkerContainer = "sluice-worker";
inline constexpr int kWorkerPort = 7471;
inline constexpr int kMetricsPort = 9464;
inline constexpr std::string_view kBundlePath = "/opt/sluice";
inline constexpr std::string_view kSocketDirectory = "/run/sluice";
inline constexpr std::string_view kSocketPath = "/run/sluice/feeder.sock";
inline constexpr std::string_view kTlsPath = "/etc/sluice/tls";
inline constexpr std::string_view kTlsServerName = "worker.sluice.internal";

inline std::string service_name(std::string_view job) { return std::string(job) + "-workers"; }
inline std::string secret_name(std::string_view job) { return std::string(job) + "-sluice-tls"; }
inline std::string worker_pod_name(std::string_view job, int ordinal) {
  return std::string(job) + "-worker-" + std::to_string(ordinal);
}

}  // namespace sluice::control
