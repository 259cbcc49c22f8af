// The jobs of a simulation.
//
// Thread safety: plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::simulator {

// A job that needs less CPU than this for its data counts as if it needed this much, so that ratios are finite.
inline constexpr double kLeastKnee = 1e-3;

// What a job ended with.
struct LearntJob {
  double knee_cores_per_gpu = 1;
  int workers = 0;
};

struct JobSpec {
  std::string name;
  double arrival_seconds = 0;
  int gpus = 1;
  double ideal_seconds = 0;         // running time if it never waits for data
  double knee_cores_per_gpu = 1;    // local cores per GPU at which supply meets demand, >= kLeastKnee
  double network_gbps_per_gpu = 0;  // at full speed, if remote workers prepared everything
  int data_set = -1;  // of the cluster, which it reads `epochs` times in all; -1: Physics says what it reads
  bool next_epoch_known = false;  // its sampler knows the order of the epoch after this one, as DistributedSampler
  int epochs = 1;                 // with a data set
  double local_cores = 0;         // fixed CPU of its feeder on its host; 0: the plan sets it
  int priority = 0;               // higher first
  int weight = 100;               // 1..10000
  // From its start until it takes the first batch; none: Physics::trainer_startup_seconds.
  std::optional<double> startup_seconds;
  // What the scheduler knows of a job like it that ran before; none: it begins without knowledge.
  std::optional<LearntJob> learnt;
  int line = 0;  // of the file that it was read from, for messages; 0: it has none

  double gpu_seconds() const { return gpus * ideal_seconds; }
};

using Workload = std::vector<JobSpec>;

}  // namespace sluice::simulator
