// Why the pods of a trainer's Job do not run, in words for its status.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/api/trainer_job.h"
#include "src/kube/store.h"

namespace sluice::act {

// Why a pod of the Job cannot start, or that the Job has made none; empty: the pods come. `pods`: of any of the
// trainer's Jobs. `objection`: of a LimitRange to what the job says; where there is no pod, it is why.
std::string trainer_obstacle(const api::TrainerJob& job, const std::vector<kube::ObjectPointer>& pods,
                             const std::string& objection = {});

// `text` and the obstacle (empty: none). `before` is the text that was written last. It is kept while only the numbers
// of the obstacle differ: kube-scheduler counts the nodes anew with each change in the cluster. Else the status of each
// job that waits would be written each time.
std::string with_obstacle(const std::string& text, const std::string& obstacle, const std::string& before);

}  // namespace sluice::act
