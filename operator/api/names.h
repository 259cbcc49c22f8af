// Names of Sluice's objects, containers, ports and paths; docs/designs/protocols.md, section 2, is their contract.
//
// Everything is derived from the TrainingJob's name, so that creating a child twice meets the first one.
// Thread safety: constants and pure functions.
#pragma once

#include <string>
#include <string_view>

namespace sluice::api {

inline constexpr std::string_view kTrainingJobKind = "TrainingJob";
inline constexpr std::string_view kPoolKind = "DataWorkerPool";

// Field manager of everything the operator writes ...
inline constexpr std::string_view kOperatorManager = "sluice-operator";
// ... but DataWorkerPool.spec.replicas, which an autoscaler or a person may take over.
inline constexpr std::string_view kSchedulerManager = "sluice-scheduler";
// ... and DataWorkerPool.spec.workerResources, which the operator sets even if an autoscaler sets the number.
inline constexpr std::string_view kSizingManager = "sluice-sizing";

inline constexpr std::string_view kBundleContainer = "sluice-bundle";
inline constexpr std::string_view kFeederContainer = "sluice-feeder";
inline constexpr std::string_view kWorkerContainer = "sluice-worker";
inline constexpr int kWorkerPort = 7471;
inline constexpr int kMetricsPort = 9464;
inline constexpr int kProbesPort = 9465;
inline constexpr int kRendezvousPort = 29500;  // torchrun's own default
inline constexpr std::string_view kBundlePath = "/opt/sluice";
inline constexpr std::string_view kBundlePythonPath = "/opt/sluice/python";
inline constexpr std::string_view kSocketDirectory = "/run/sluice";
inline constexpr std::string_view kSocketPath = "/run/sluice/feeder.sock";
inline constexpr std::string_view kTlsPath = "/etc/sluice/tls";
inline constexpr std::string_view kTlsServerName = "worker.sluice.internal";
// Of the caches of nodes: what is mounted of them, and what their certificate and the tokens for them say.
inline constexpr std::string_view kCachePath = "/etc/sluice/cache";
inline constexpr std::string_view kCacheServerName = "cache.sluice.internal";
inline constexpr std::string_view kCacheAudience = "sluice-cache";

inline std::string service_name(std::string_view job) { return std::string(job) + "-workers"; }
inline std::string trainers_service_name(std::string_view job) { return std::string(job) + "-trainers"; }
inline std::string secret_name(std::string_view job) { return std::string(job) + "-sluice-tls"; }
inline std::string worker_pod_name(std::string_view job, int ordinal) {
  return std::string(job) + "-worker-" + std::to_string(ordinal);
}

// "vision" of "vision-worker-3"; empty for another name.
inline std::string job_of_worker_pod_name(std::string_view pod) {
  constexpr std::string_view kInfix = "-worker-";
  const std::size_t at = pod.rfind(kInfix);
  if (at == pod.npos || at + kInfix.size() == pod.size()) return "";
  const bool numbered = pod.find_first_not_of("0123456789", at + kInfix.size()) == pod.npos;
  return numbered ? std::string(pod.substr(0, at)) : "";
}

}  // namespace sluice::api
