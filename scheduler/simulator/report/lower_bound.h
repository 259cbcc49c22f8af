// A proven lower bound on the mean completion time of any policy, also of a clairvoyant one: a linear programme.
//
// Time is cut into slices; y_ik is the work (seconds at full speed) that job i gets in slice k.
//   sum_k y_ik = T_i                       all work is done
//   y_ik <= length of k after i's arrival  no job is faster than full speed
//   sum_i g_i y_ik <= G len_k              work needs its GPUs at least for its ideal time
//   sum_i K_i y_ik <= C len_k              and at least kappa cores per GPU; C counts remote cores by their efficiency
//   C_i >= sum_k begin_ik y_ik / T_i + T_i / 2     a job that runs at full speed at most ends half of its ideal time
//                                                  after the mean moment of its work (Goemans 1997), and
//   C_i >= r_i + T_i                               not before it could have
//   minimise the mean of C_i - r_i
// Each line holds for every schedule that the simulator can produce, so no policy beats the optimum of the relaxation.
// Interference, sub-linear hosts, failures, pauses and the soft knee only make real schedules slower.
//
// Solver: CLP (COIN-OR). Thread safety: free function.
#pragma once

#include <cstdint>

#include "scheduler/simulator/world/cluster.h"
#include "scheduler/simulator/world/workload.h"
#include "src/base/result.h"

namespace sluice::simulator {

// Seconds. `horizon_seconds`: a moment by which some schedule has finished all jobs.  Errors: Internal when the solver
// does not find the optimum.
Result<double> least_mean_completion(const Cluster& cluster, const Workload& workload, std::uint64_t seed,
                                     double horizon_seconds);

}  // namespace sluice::simulator
