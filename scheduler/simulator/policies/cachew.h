// Cachew: each job's tuner adds one remote worker a step (cachew_tuner.h); free workers go to the first job that wants
// one.
//
// A Cachew worker has a fixed size, the same for all jobs: 7 cores in the paper (a pod of 7000m on n2-standard-8). It
// is made of as many data workers of the job's own size as it takes. Beside them a trainer keeps its GPU-proportional
// share, which the original leaves unused.
//
// A report is the mean of four windows of metrics. Of 1, 4 and 8 it is a good compromise between fast growth and few
// errors by noise.
//
// Source: Cachew (USENIX ATC'22), sections 4.2 and 4.3: a worker serves at most one job; FIFO, no priorities.
#pragma once

#include <memory>
#include <string_view>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/cachew_tuner.h"

namespace sluice::scheduler {

struct CachewWorker {
  std::string_view policy_name = "cachew";
  int millicores = 7000;
};

std::unique_ptr<Policy> make_cachew_policy(const CachewWorker& worker, const CachewConstants& constants = {},
                                           int windows_per_report = 4);

}  // namespace sluice::scheduler
