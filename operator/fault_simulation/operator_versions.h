// Two releases of the operator: the simulated one, and one that it is upgraded from or rolled back to.
//
// The other one writes what another release would: other images of the bundle, so other templates of worker pods, and a
// priority class for them. It knows no NetworkPolicies and resizes no feeder, as earlier releases did not.
// Thread safety: pure functions.
#pragma once

#include "operator/control_plane.h"

namespace sluice::simulation {

enum class OperatorVersion { kThis, kOther };

control::Config config_of(OperatorVersion version);

// What that release leaves unwritten; `wrap` (may be empty) is of both.
control::WrapSeams seams_of(OperatorVersion version, const control::WrapSeams& wrap);

}  // namespace sluice::simulation
