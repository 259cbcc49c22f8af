// Time lines of a run, cut into equal buckets, and their drawing as SVG.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "scheduler/simulator/engine.h"

namespace sluice::simulator {

// Means over one bucket of time.
struct Bucket {
  double gpus_allocated = 0;
  double gpus_busy = 0;
  double local_cores = 0;
  double remote_cores = 0;
};

// The whole cluster. REQUIRES: the run recorded its timeline
std::vector<Bucket> buckets_of(const RunRecord& run, const Workload& workload, double bucket_seconds, int count);

// One job: speed and cores per bucket; speed < 0 where it does not run.
struct JobBucket {
  double speed = -1;
  double local_cores = 0;
  double remote_cores = 0;
  double wanted_cores = 0;
};
std::vector<JobBucket> job_buckets(const JobRecord& job, double bucket_seconds, int count);

// GPUs allocated and busy, and CPU given, over time.
std::string gpu_chart(const std::vector<Bucket>& buckets, double bucket_seconds, int gpus);
std::string cpu_chart(const std::vector<Bucket>& buckets, double bucket_seconds, double cores);

// One strip for each of the largest jobs: coloured by speed, as high as the CPU it has of the CPU it wants.
std::string job_chart(const RunRecord& run, const Workload& workload, double bucket_seconds, int count, int most_jobs);

}  // namespace sluice::simulator
