// The trainer's pods: the user's template plus the feeder.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/config.h"

namespace sluice::act {

// The pod template of the trainer's Job. With `with_feeder`:
//   init containers   the user's own, then sluice-bundle, then the native sidecar sluice-feeder: it listens before the
//                     trainer starts (startup probe), runs beside it, and does not keep the Job from completing
//   trainer           the client's Python package first on its path, the feeder's socket, SLUICE_* variables
//   annotations       Prometheus scrapes the feeder
// Without (mode Off): the user's template with labels only, plain PyTorch.
// Errors: InvalidArgument for an arena that is no quantity.
Result<nlohmann::json> trainer_pod_template(const nlohmann::json& training_job, bool with_feeder,
                                            const control::Config& config);

}  // namespace sluice::act
