// Parameters of the default policy. The defaults are those of docs/scheduling.md and are meant to be left alone. The
// operator's configuration sets objective, headroom and starved_above. It also sets max_age_seconds, and lowers
// min_window_seconds where its window of metrics is shorter.
#pragma once

#include <string_view>

#include "src/base/result.h"

namespace sluice::scheduler {

// The worth of the next core to a job; docs/scheduling.md, section "Objectives".
enum class Objective {
  kBalanced,        // the documented mix: jobs that end soon first, large gangs more, none starved
  kThroughput,      // the sum of all GPUs' progress
  kCompletionTime,  // mean job completion time alone
  kFair,            // the job with the least progress first
  kCost,            // as balanced, and only workers that are worth their price
};

std::string_view to_string(Objective objective);  // "balanced", "throughput", "completion-time", "fair", "cost"
Result<Objective> parse_objective(std::string_view text);  // Errors: InvalidArgument, with the names there are

struct Config {
  Objective objective = Objective::kBalanced;

  // --- which measurements count ---
  double max_age_seconds = 90;            // an older measurement is stale: the last allocation is held,
  double max_late_seconds = 300;          // unless measurements keep coming, and all of them are late, up to this
  double metrics_fallback_seconds = 900;  // held so long without a measurement; then measured jobs go first
  double min_window_seconds = 10;         // shorter windows are dominated by the edges of batches
  double min_batches = 20;

  // --- estimation ---
  double remote_efficiency = 0.77;     // remote rate / local rate per core, until both are measured
  double smoothing = 0.2;              // weight of a new measurement
  double publish_threshold = 0.10;     // the knee moves only when the smoothed one has moved by more than this fraction
  double publish_sigmas = 3.5;         // and by more standard deviations than this of its own noise
  double starved_above = 0.05;         // wait share over which the trainer is starved
  double sated_below = 0.01;           // wait share under which supply may shrink
  double probed_at_once_above = 0.25;  // wait share over which one window of few batches shows a starved job
  double feedback_raise = 1.10;        // starved although supply looked sufficient: at least this factor,
  double feedback_raise_most = 2;      // at most this one, between them as much as the shortfall proves
  double feedback_lower = 0.97;        // sated with supply to spare
  double feedback_noise = 0.15;        // of the knee, up to which one window is evidence; twice as much takes four
  double feedback_limit = 8;           // the correction stays within [1/limit, limit]
  double feedback_raise_above = 0.95;  // supply ratio from which "looked sufficient" holds
  double feedback_tolerance = 0.02;    // and less speed than promised by more than this share of full speed
  double feedback_lower_above = 1 / 0.9;
  double feedback_busy_above = 0.3;    // busy share of the granted cores below which more is no cure
  double feedback_queue_below = 0.5;   // share of the batches asked for ahead that lie ready: else it is no lack
  double local_extrapolation = 2;      // idle feeder CPU counts up to this multiple of its observed use: hosts saturate
  double remote_extrapolation = 20;    // remote cores wanted, as a multiple of all cores observed at work
  double judged_gain = 0.3;            // growth that promised at least this is judged by its gain
  double least_share_of_gain = 0.25;   // below this share of the promise it was useless and is given back
  double useless_retry_seconds = 600;  // after which it may be tried again
  double interference_above = 0.05;    // rise of the computing time per batch at which feeders give CPU back
  double read_limit_idle_above = 0.15;  // share of its CPU that idles in a job whose reads may limit it
  double read_limit_headroom = 1.5;  // CPU of such a job over what it uses: from it shows that the storage gives more
  double storage_bound_above = 0.5;  // share of the executors' idle time that threads spend blocked
  double gpu_bound_above = 0.9;      // computing share of the time
  double network_bound_above = 0.9;  // share of a host's network

  // --- allocation ---
  double headroom = 1.2;                   // remote supply / the demand it has to cover
  double softmin_exponent = 6;             // q of progress = (1 + x^-q)^(-1/q); published curves fit 3..60
  double min_slope = 0.1;                  // no new worker once d progress / d supply ratio is below
  double held_bonus = 0.10;                // hysteresis: workers that exist are worth this fraction more than new ones
  double shortest_remaining_seconds = 60;  // a job about to end does not outbid all others
  double floor_of_need = 1.05;             // the floor covers at most this multiple of the knee
  double coarse_piece = 0.15;              // of the need, granted at a time while the job has less than
  double coarse_below = 0.7;               // of it,
  double fine_piece = 0.05;                // and then
  double storage_overbooking = 0.15;       // share of a storage's bandwidth that growth is promised beyond it
  double worker_pays_after_seconds = 60;   // no worker is started for a job that ends sooner
  double core_hours_per_gpu_hour = 40;     // objective cost: what an hour of a GPU is worth

  // Whether plans have JobPlan::evidence and explanation. A simulation reads no sentences, and writing them is a good
  // part of a decision.
  bool in_words = true;
};

}  // namespace sluice::scheduler
