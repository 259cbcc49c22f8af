// The figures by which a scenario of the catalogue is judged, and whether its goals are reached.
//
//   jct_gain          mean JCT of static / sluice       allocated_gain, wall_gain   utilisation of sluice / static
//   no_stall_gain     mean JCT of static / no-stall      p99_slowdown, p99_slowdown_static
//   over_PEER         mean JCT of a peer / sluice; peers are burst, synergy, hpa, keda, cachew and pecan, with their
//                     variants: workers also on GPU hosts (-everywhere), workers of another size (-1, -2)
//   over_best_peer    the least of them: of whichever peer is the best in this scenario
//   share_of_perfect  mean JCT of sluice with perfect information / sluice
//   over_lower_bound  mean JCT of sluice / the lower bound of any schedule
//   no_stall_over_lower_bound   the queue's part of it: the bound may start jobs in any order, which no
//                     policy does
//   harmed            share of jobs more than 5 % + 60 s slower than under static
//   workers_started   by sluice
//   over_true_rates, no_feedback_over_true_rates   mean JCT of sluice, with and without feedback, over sluice where the
//                     executors' rates are true; in scenarios where they are not
//   starts_over_little_noise, over_little_noise   workers started by sluice, and its mean JCT, over those where
//                     the metrics have little noise; in scenarios where they have more
//   unannounced_over_sluice, unannounced_p99_slowdown   mean JCT where no trainer says how long it will train, over
//                     that of sluice, and the 99th percentile of its slowdown; in scenarios where trainers say it
//   fetches_per_sample, fetches_per_sample_CACHE   what reaches the storage of a sample's bytes, of sluice and of
//   sluice
//                     with another cache: none, lru, keep, quiver, seneca; in scenarios with data sets and a cache
//   makespan_over_CACHE, jct_over_CACHE   makespan and mean JCT of sluice with another cache / sluice
//   seconds_to_90     from the start of a trainer until it is at 90 % of full speed, of the slowest job; only
//                     where it is a goal
// Ratios are geometric means over the seeds with 95 % confidence intervals.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/simulator/report/experiment.h"

namespace sluice::simulator {

struct Judged {
  std::string figure;
  Interval value;
  std::string remark;               // the name of the best peer
  std::optional<double> reference;  // the prototype's
  std::optional<double> at_least, at_most;

  bool has_goal() const { return at_least || at_most; }
  bool reached() const;
};

// Policies that the scenario is judged by.
std::vector<std::string> judged_policies(const Scenario& scenario);

// `lower_bounds`: least mean completion by seed; empty: not computed, and the figure is left out.
// A reference of a figure that was not asked for is let be.
// Errors: InvalidArgument for a goal whose figure does not exist.
Result<std::vector<Judged>> judge(const Scenario& scenario, const Grid& grid, const std::vector<double>& lower_bounds);

// The lower bound of each seed. Errors: of least_mean_completion().
Result<std::vector<double>> lower_bounds_of(const Scenario& scenario, const Grid& grid, int threads);

}  // namespace sluice::simulator
