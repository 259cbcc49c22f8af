// The platform's caps on what the TrainingJobs of a namespace say of themselves.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "operator/config.h"
#include "scheduler/model/snapshot.h"

namespace sluice::observe {

// Bounds the job's priority and weight. Returns a sentence for each that was above; empty: none was.
std::string apply_caps(const control::NamespaceCaps& caps, scheduler::Job& job);

}  // namespace sluice::observe
