// How trainer pods of one job find each other: docs/designs/multi-node.md.
//
// Thread safety: pure functions.
#pragma once

#include "operator/api/pod_spec_draft.h"
#include "operator/api/service_draft.h"
#include "operator/api/training_job.h"

namespace sluice::act {

// The Service that gives every trainer pod a name, before it is ready, too.
api::ServiceDraft trainers_service(const api::TrainingJob& training_job);

// Adds to the trainer's pod its place in that Service, and to its training container the variables that
// torch.distributed and torchrun read. A variable that the user has set stays.
// REQUIRES: the job has more than one trainer pod.
void add_rendezvous(api::PodSpecDraft& pod, const api::TrainingJob& training_job);

}  // namespace sluice::act
