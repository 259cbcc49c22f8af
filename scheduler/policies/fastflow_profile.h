// FastFlow's decision for one job: whether to offload preprocessing, which part of the data, and to how many workers.
//
// Source: Um et al., "FastFlow: Accelerating Deep Learning Model Training with Smart Offloading of Input Data
// Pipeline", VLDB'23, Algorithm 1; the number of workers is that of the authors' release (initial workers = ceil((G -
// L)/R1 - 0.1)).
//
//   G, L, R   samples/s of the accelerator if it never waits, of the local pipeline, of the remote pipeline
//   O / P     cycles that offloading costs the trainer's CPU, relative to those of the whole pipeline
//   no offload if G <= L or G / L < 1.1
//   upper = R, what the remote side can do; lower = (G - L)(1 + O/P), what it has to do
//   offload ratio = upper / G if lower < upper (at most everything), else R / (L + R)
//
// Thread safety: pure functions on values.
#pragma once

namespace sluice::scheduler {

struct FastFlowConstants {
  double offload_above = 1.1;   // G / L
  double worker_slack = 0.1;    // so much of a worker too few is not worth another one
  double offload_overhead = 0;  // O / P
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

// Share of the samples that the remote side prepares when it has so many workers, 0..1.  REQUIRES: as above
double fastflow_offload_ratio(const FastFlowProfile& profile, int workers, const FastFlowConstants& constants);

}  // namespace sluice::scheduler
