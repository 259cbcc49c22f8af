// What a data worker has from the trainer's pod and cannot have as it is there.
//
// Thread safety: pure functions.
#pragma once

#include "operator/api/container_draft.h"
#include "operator/api/object_draft.h"
#include "operator/api/training_job.h"

namespace sluice::act {

// `container`: a worker's, made from the trainer's. The kubelet starts no container that refers to the resources of a
// container that is not in its pod. So references to the trainer's containers become references to the worker's own.
// Mounts whose path depends on the pod are removed (api/trainer_data.h).
void settle_in(api::ContainerDraft& container, const api::TrainingJob& training_job);

// Adds the annotations of the trainer's pod by which a CSI driver finds the pods that mount its volumes.
void take_annotations_of_volumes(api::MetadataDraft& worker, const api::Object& trainer);

// A trainer that a service mesh is to leave alone cannot talk to workers behind the mesh's proxies: labels and
// annotations that say so hold for workers, too.
void stay_out_of_meshes(api::MetadataDraft& worker, const api::Object& trainer);

}  // namespace sluice::act
