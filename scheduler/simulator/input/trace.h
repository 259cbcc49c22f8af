// Readers of the formats that the jobs of a simulation come in.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "scheduler/simulator/world/workload.h"
#include "src/base/result.h"

namespace sluice::simulator {

enum class TraceFormat {
  kJobList,      // arrival_s gpus ideal_s kappa gbps_per_gpu [start_s finish_s], one job a line
  kPhilly,       // Gavel's tab-separated form of the Philly trace
  kAlibaba2023,  // cluster-trace-gpu-v2023, pods
  kSia,          // Sia's CSV: time, name, application, num_replicas, ..., duration
};

// Errors: InvalidArgument naming the formats.
Result<TraceFormat> trace_format(std::string_view name);

// A kind of model: one entry of catalogue/profiles.yaml.
struct Profile {
  double knee_cores_per_gpu = 0;    // on a V100
  double network_gbps_per_gpu = 0;  // of the samples, ready for the trainer, at full speed
  double steps_per_second = 0;      // on one V100; 0: unknown
};
using Profiles = std::map<std::string, Profile>;

// Assumptions of the simulator that a trace does not say.
struct TraceAssumptions {
  double time_scale = 1;   // arrivals and durations are divided by it
  double knee_factor = 1;  // knees of the profiles are of V100s: 2.5 for GPUs of today
  std::uint64_t seed = 1;  // of the draws: models of unnamed jobs, durations that the trace leaves out
};

// The jobs in the order of their arrival, the first at time 0 where the format has absolute times. `file` is used in
// messages only.
// Errors: InvalidArgument "FILE:LINE: what is wrong"; a job whose model has no profile is an error of that line.
Result<Workload> parse_trace(TraceFormat format, std::string_view text, const std::string& file,
                             const TraceAssumptions& assumptions, const Profiles& profiles);

// "WHO wants 9 GPUs, and the cluster has 8"
std::string larger_than_cluster(const std::string& who, int gpus, int cluster_gpus);

// Errors: InvalidArgument "FILE:LINE: ..." for the first job that wants more GPUs than the cluster has.
Result<void> check_sizes(const Workload& jobs, const std::string& file, int cluster_gpus);

}  // namespace sluice::simulator
