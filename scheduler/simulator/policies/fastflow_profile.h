// FastFlow's decision for one job: whether to offload preprocessing, and to how many workers.
//
// Source: Um et al., "FastFlow: Accelerating Deep Learning Model Training with Smart Offloading of Input Data
// Pipeline", VLDB'23, Algorithm 1. The number of workers is that of the authors' release (initial workers = ceil((G -
// L)/R1 - 0.1)).
//
//   G, L, R   samples/s of the accelerator if it never waits, of the local pipeline, of the remote pipeline
//   no offload if G <= L or G / L < 1.1
// The ratio in which the algorithm then splits the samples is left to physics: a free executor takes the next one.
//
// Thread safety: pure functions on values.
#pragma once

namespace sluice::scheduler {

struct FastFlowConstants {
  double offload_above = 1.1;  // G / L
  double worker_slack = 0.1;   // so much of a worker too few is not worth another one
};

struct FastFlowProfile {
  double gpu_samples_per_second = 0;     // G
  double local_samples_per_second = 0;   // L
  double worker_samples_per_second = 0;  // R of one worker
};

// REQUIRES: local_samples_per_second > 0
bool fastflow_offloads(const FastFlowProfile& profile, const FastFlowConstants& constants);

// REQUIRES: fastflow_offloads(), worker_samples_per_second > 0
int fastflow_workers(const FastFlowProfile& profile, const FastFlowConstants& constants);

}  // namespace sluice::scheduler
