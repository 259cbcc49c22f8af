// The jobs of a simulation, and the readers of the formats they come in.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::simulator {

// A job that needs less CPU than this for its data counts as if it needed this much, so that ratios are finite.
inline constexpr double kLeastKnee = 1e-3;

struct JobSpec {
  std::string name;
  double arrival_seconds = 0;
  int gpus = 1;
  double ideal_seconds = 0;         // running time if it never waits for data
  double knee_cores_per_gpu = 1;    // local cores per GPU at which supply meets demand, >= kLeastKnee
  double network_gbps_per_gpu = 0;  // at full speed, if remote workers prepared everything
  double local_cores = 0;           // fixed CPU of its feeder on its host; 0: the plan sets it
  int priority = 0;                 // higher first
  int weight = 100;                 // 1..10000
  int line = 0;                     // of the file that it was read from, for messages; 0: it has none

  double gpu_seconds() const { return gpus * ideal_seconds; }
};

using Workload = std::vector<JobSpec>;

enum class TraceFormat {
  kJobList,      // arrival_s gpus ideal_s kappa gbps_per_gpu [start_s finish_s], one job a line
  kPhilly,       // Gavel's tab-separated form of the Philly trace
  kAlibaba2023,  // cluster-trace-gpu-v2023, pods
  kSia,          // Sia's CSV: time, name, application, num_replicas, ..., duration
};

// Errors: InvalidArgument naming the formats.
Result<TraceFormat> trace_format(std::string_view name);

// What is known of a kind of model: one entry of catalogue/profiles.yaml.
struct Profile {
  double knee_cores_per_gpu = 0;    // on a V100
  double network_gbps_per_gpu = 0;  // of the samples, ready for the trainer, at full speed
  double steps_per_second = 0;      // on one V100; 0: unknown
};
using Profiles = std::map<std::string, Profile>;

// What a trace does not say, and the simulator has to assume.
struct TraceAssumptions {
  double time_scale = 1;   // arrivals and durations are divided by it
  double knee_factor = 1;  // knees of the profiles are of V100s: 2.5 for GPUs of today
  std::uint64_t seed = 1;  // of what is drawn: models of unnamed jobs, durations that the trace leaves out
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
