// How the simulated cluster behaves. Every figure belongs to the cluster, none to a policy. A policy never reads this
// struct, only the metrics of its effects. docs/simulator.md lists the fields with their sources.
//
// The defaults are the plain physics of the reference runs: a fluid model. Local cores add up, a remote core is worth
// 0.77 local ones, and nothing fails. Everything else is off until a scenario turns it on.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>

namespace sluice::simulator {

struct Physics {
  // --- speed ---
  double softmin_exponent = 6;      // q of progress(x) = (1 + x^-q)^(-1/q); published curves fit 3..60
  double remote_efficiency = 0.77;  // worth of a remote core in local ones: transfer and serialisation
  // n cores of one host supply like n^local_exponent of them. From local_flatter_above_cores on, the curve goes on like
  // n^local_flatter_exponent. Pecan's TPU host: 0.8, 4, 0.5. 1: linear.
  double local_exponent = 1;
  double local_flatter_above_cores = 0;  // 0: never flatter
  double local_flatter_exponent = 0.5;
  // Share of its full speed that a trainer loses when all cores of its host prepare data, for whichever job.
  double interference = 0;
  // A gang on several hosts steps at the pace of its worst-fed host; false: at the pace of the sum.
  bool slowest_rank = true;
  // CPU that a job puts to use when its host has it to spare, in knees. Idle CPU beyond it stays idle.
  double local_appetite = 1.5;
  double min_local_millicores = 10;  // the least CPU of a feeder, under every plan

  // --- starting and stopping ---
  double worker_startup_seconds = 20;  // from the decision until a remote worker delivers
  double worker_warmup_seconds = 0;    // after that it delivers at worker_warmup_speed for so long
  double worker_warmup_speed = 0.5;
  double worker_drain_seconds = 0;  // a stopped worker holds its CPU for so long
  double trainer_startup_seconds = 0;
  std::int64_t worker_millicores = 1000;
  double worker_limit_factor =
      1;  // CPU limit of a worker over its request: it may use idle CPU of its node up to there
  int max_workers_per_job = 1 << 20;

  // --- decisions ---
  double decision_period_seconds = 15;  // and when a trainer starts or finishes, or a worker is lost
  double admission_period_seconds = 0;  // trainers start at multiples of it; 0: at once
  // While decisions change nothing, the period doubles up to this; any event puts it back. The default is no doubling.
  double decision_period_most_seconds = 0;

  // --- what an exporter shows ---
  double metrics_age_seconds = 30;     // age of the end of the window when a policy sees it
  double metrics_window_seconds = 15;  // longer where a window holds fewer than metrics_window_batches
  double metrics_window_batches = 20;
  double metrics_window_most_seconds = 600;
  double metrics_noise = 0.05;  // standard deviation of the logarithm, independent per figure and scrape
  // The same of a factor that stays with a job. All its executors report their busy CPU too high or too low by it.
  // Every rate of the job is wrong by it, and so is its knee.
  double busy_cpu_error = 0;
  double batches_per_second_per_gpu = 20;  // of a trainer at full speed
  bool remaining_time_known = true;        // trainers announce their number of steps
  bool perfect_information = false;        // the truth at once, without noise: for the oracle only

  // --- data ---
  double storage_gbps = 0;                // shared by all jobs; 0: unlimited
  double storage_share_of_network = 0.2;  // bytes read per byte that a decoded sample weighs on the network
  double cached_after_first_epoch = 1;    // share of later epochs' reads that no longer reach the storage
  double epoch_seconds = 0;               // of training at full speed; 0: one epoch
  double evaluation_seconds = 0;          // the trainer computes, without data, after each epoch
  double cost_change = 0;                 // standard deviation of the logarithm of the knee, drawn anew every
  double cost_change_seconds = 3600;      // so many seconds of training at full speed

  // --- failures ---
  double node_failure_hours = 0;  // mean time between failures of a node; 0: never
  double node_repair_seconds = 600;
  double spot_reclaim_hours = 0;  // mean time until a spot node is taken away; 0: never
  double spot_return_seconds = 1200;
  double checkpoint_seconds = 600;  // a trainer that fails goes back to the last multiple of it

  // --- prices ---
  double gpu_price_per_hour = 2.48;   // while allocated (V100 on demand, us-central1)
  double core_price_per_hour = 0.05;  // while given to a job
  // The cores of a GPU's host are part of the GPU's price: feeders cost nothing more, only data workers elsewhere do.
  bool gpu_price_includes_host = false;
};

// Share of full speed at a ratio x >= 0 of supply to demand.
double progress(double supply_ratio, double softmin_exponent);

// How the cost of a job's samples in its n-th stretch of cost_change_seconds compares with its first.
double cost_factor(const Physics& physics, std::uint64_t seed, int job, int stretch);

// Cores' worth of work that `cores` >= 0 cores of one host do together.
double local_supply_cores(double cores, const Physics& physics);

}  // namespace sluice::simulator
