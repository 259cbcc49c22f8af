// The trainer's pods: the user's template plus the feeder.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>

#include "operator/api/training_job.h"
#include "operator/config.h"

namespace sluice::act {

enum class FeederRole {
  kNone,          // mode Off: plain PyTorch
  kMakesBatches,  // on the CPU that it has
  kBridges        // the time without workers, with one thread: remote placement counts on no CPU of the trainer's host
};

// The pod template of the trainer's Job. With a feeder:
//   init containers   the user's own, then sluice-bundle, then the native sidecar sluice-feeder: it starts before the
//                     trainer, runs beside it, and does not keep the Job from completing
//   trainer           the client's Python package first on its path, the feeder's socket, SLUICE_* variables
//   annotations       Prometheus scrapes the feeder
//   several pods      each has a name in the headless Service, and the variables of the rendezvous
// Without: the user's template with labels and the rendezvous only.
// `held_host_ports`: of nodes; a feeder on its node's network takes others.
// Errors: InvalidArgument for an arena that is no quantity.
Result<nlohmann::json> trainer_pod_template(const api::TrainingJob& training_job, FeederRole role,
                                            const control::Config& config,
                                            const std::set<std::int64_t>& held_host_ports = {});

}  // namespace sluice::act
