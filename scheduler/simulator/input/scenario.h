// A scenario: a cluster, where its jobs come from, and what to expect. Read from YAML; docs/simulator.md lists the
// fields.
//
// Thread safety: plain values and pure functions, except read_file().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/simulator/input/trace.h"
#include "scheduler/simulator/world/cluster.h"
#include "scheduler/simulator/world/engine.h"
#include "src/base/result.h"

namespace sluice::simulator {

// A recipe for random jobs of given kinds.
struct Recipe {
  int jobs = 200;
  double load = 0.8;             // of the GPUs, as if nothing stalled
  double burstiness = 1;         // coefficient of variation of the times between arrivals, >= 1
  double duration_divisor = 10;  // of Gavel's law: 80 % 10^U(1.5,3), 20 % 10^U(3,4) minutes
  double knee_factor = 1;        // over the profiles' V100: 2.5 for GPUs of today
  double knee_spread = 0.1;      // standard deviation of the logarithm, job by job
  std::map<int, double> gpus = {{1, 0.69}, {2, 0.1}, {4, 0.165}, {8, 0.045}};  // weights
  std::map<std::string, double> models;                                        // weights of profiles
};

// The goal of a figure of sim-report.
struct Goal {
  std::string figure;
  std::optional<double> at_least;
  std::optional<double> at_most;
};

struct Scenario {
  std::string name;
  std::string summary;
  Cluster cluster;
  Recipe recipe;
  std::string job_list;  // file name, "{seed}" replaced by the seed; empty: the recipe alone
  Workload jobs;         // given in the scenario itself; wins over both
  std::vector<Incident> incidents;
  bool baselines = true;  // whether sim-report compares with them
  std::vector<Goal> goals;
  std::map<std::string, double> reference;  // the prototype's values by figure
};

Result<std::string> read_file(const std::string& path);

// Errors: InvalidArgument "FILE:LINE: ..."
Result<Scenario> parse_scenario(std::string_view text, const std::string& file);
Result<Cluster> parse_cluster(std::string_view text, const std::string& file);
Result<Profiles> parse_profiles(std::string_view text, const std::string& file);

// Random jobs by recipe: the same for the same seed.  Errors: InvalidArgument when a model has no profile.
Result<Workload> generate(const Recipe& recipe, int cluster_gpus, const Profiles& profiles, std::uint64_t seed);

// Where workloads are looked for.
struct Sources {
  std::string lists_folder;  // of job lists; empty: recipes are used
  Profiles profiles;
};

// The jobs of one seed of a scenario. Errors: as parse_trace() and generate(), or NotFound for a missing list.
Result<Workload> workload_of(const Scenario& scenario, const Sources& sources, std::uint64_t seed);

}  // namespace sluice::simulator
