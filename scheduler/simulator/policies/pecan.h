// Pecan: each job's tuner places workers remotely and on the trainer's own hosts (pecan_tuner.h); free remote workers
// go to the first job that wants one.
//
// A remote worker has the size of Cachew's. The original uses at most ten local workers of a trainer's host. Here they
// are the job's whole GPU-proportional share, one worker a tenth of it. They are there from the start: the share is the
// trainer's own, and the original's start with a single remote worker would leave it idle. A job that has not had a
// remote worker yet has nothing to compare, and waits for one. AutoOrder does not appear: it makes samples cheaper, for
// every policy alike.
//
// Source: Pecan (USENIX ATC'24), section 5.1.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/pecan_tuner.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_pecan_policy(int remote_worker_millicores = 7000, const PecanConstants& constants = {},
                                          int windows_per_report = 4);

}  // namespace sluice::scheduler
