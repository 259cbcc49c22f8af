#include "scheduler/simulator/report/experiment.h"

#include <algorithm>

#include "scheduler/simulator/policies/registry.h"
#include "src/base/in_parallel.h"

namespace sluice::simulator {
namespace {

constexpr const char* kNoStall = "no-stall";
constexpr const char* kPerfect = "perfect";
constexpr const char* kTrueRates = "true-rates";
constexpr const char* kNoFeedback = "no-feedback";
constexpr const char* kLittleNoise = "little-noise";
constexpr const char* kUnannounced = "unannounced";
constexpr const char* kSluiceCost = "sluice-cost";

// Sluice with nothing to learn: a measurement is the truth, so it counts in full, at any distance from the present
// state.
scheduler::Config perfect_config() {
  scheduler::Config config;
  config.smoothing = 1;
  config.publish_threshold = 0;
  config.publish_sigmas = 0;
  config.feedback_limit = 1;
  config.local_extrapolation = 1e9;
  config.remote_extrapolation = 1e9;
  return config;
}

Result<RunRecord> run_perfect(Cluster cluster, const Workload& workload, const RunOptions& options) {
  cluster.physics.perfect_information = true;
  cluster.physics.worker_startup_seconds = 0;
  cluster.physics.worker_warmup_seconds = 0;
  cluster.physics.remaining_time_known = true;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", perfect_config()));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_without_stalls(Cluster cluster, Workload workload, const RunOptions& options) {
  cluster.physics.storage_gbps = 0;
  cluster.physics.interference = 0;
  for (JobSpec& job : workload) job.knee_cores_per_gpu = 1e-6;
  SLUICE_TRY(const auto policy, scheduler::make_policy("static", {}));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_with_true_rates(Cluster cluster, const Workload& workload, const RunOptions& options) {
  cluster.physics.busy_cpu_error = 0;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", {}));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_with_little_noise(Cluster cluster, const Workload& workload, const RunOptions& options) {
  cluster.physics.metrics_noise = Physics{}.metrics_noise;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", {}));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_unannounced(Cluster cluster, const Workload& workload, const RunOptions& options) {
  cluster.physics.remaining_time_known = false;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", {}));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_without_feedback(const Cluster& cluster, const Workload& workload, const RunOptions& options) {
  scheduler::Config config;
  config.feedback_limit = 1;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", config));
  return simulate(cluster, workload, *policy, options);
}

Result<RunRecord> run_for_money(const Cluster& cluster, const Workload& workload, const RunOptions& options) {
  scheduler::Config config;
  config.objective = scheduler::Objective::kCost;
  SLUICE_TRY(const auto policy, scheduler::make_policy("sluice", config));
  return simulate(cluster, workload, *policy, options);
}

// The part of a policy's name before "+".
std::string scheduler_of(const std::string& policy) { return policy.substr(0, policy.find('+')); }

// The cache that a policy runs with; errors: InvalidArgument.
Result<CacheRule> cache_of(const std::string& policy, CacheRule of_scenario) {
  if (const auto plus = policy.find('+'); plus != std::string::npos) return cache_rule(policy.substr(plus + 1));
  for (const char* with_ours : {"sluice", kPerfect, kTrueRates, kNoFeedback, kLittleNoise, kUnannounced, kSluiceCost})
    if (policy == with_ours) return CacheRule::kReuseDistance;
  return policy.starts_with("cachew") ? CacheRule::kKeep : of_scenario;
}

Result<void> check_policy(const std::string& policy) {
  SLUICE_TRY_VOID(cache_of(policy, CacheRule::kNone));
  const std::string name = scheduler_of(policy);
  for (const char* name_of_limit :
       {kNoStall, kPerfect, kTrueRates, kNoFeedback, kLittleNoise, kUnannounced, kSluiceCost})
    if (name == name_of_limit) return {};
  auto made = scheduler::make_policy(name, {});
  if (!made.ok()) return made.error();
  return {};
}

}  // namespace

int Grid::column(const std::string& policy) const {
  const auto found = std::find(policies.begin(), policies.end(), policy);
  return found == policies.end() ? -1 : static_cast<int>(found - policies.begin());
}

std::vector<double> Grid::values(int policy, Figure figure) const {
  std::vector<double> values;
  for (const Figures& each : figures[policy]) values.push_back(at(each, figure));
  return values;
}

std::vector<std::string> all_policies() {
  std::vector<std::string> names;
  for (const std::string_view name : scheduler::policy_names()) names.emplace_back(name);
  names.emplace_back(kPerfect);
  names.emplace_back(kNoStall);
  return names;
}

Result<RunRecord> run_policy(const std::string& name, const Cluster& given, const Workload& workload,
                             const RunOptions& options) {
  Cluster cluster = given;
  SLUICE_TRY(cluster.cache.rule, cache_of(name, given.cache.rule));
  const std::string policy = scheduler_of(name);
  auto record = [&]() -> Result<RunRecord> {
    if (policy == kPerfect) return run_perfect(cluster, workload, options);
    if (policy == kNoStall) return run_without_stalls(cluster, workload, options);
    if (policy == kTrueRates) return run_with_true_rates(cluster, workload, options);
    if (policy == kLittleNoise) return run_with_little_noise(cluster, workload, options);
    if (policy == kUnannounced) return run_unannounced(cluster, workload, options);
    if (policy == kSluiceCost) return run_for_money(cluster, workload, options);
    if (policy == kNoFeedback) return run_without_feedback(cluster, workload, options);
    SLUICE_TRY(const auto made, scheduler::make_policy(policy, {}));
    return simulate(cluster, workload, *made, options);
  }();
  if (record.ok()) record->policy = name;
  return record;
}

Result<Grid> run_grid(const Scenario& scenario, const Sources& sources, const GridOptions& options) {
  Grid grid;
  grid.policies = options.policies;
  // Fairness is measured against `static`, whether or not it is among the policies asked for.
  if (grid.column("static") < 0) grid.policies.emplace_back("static");
  for (const std::string& policy : grid.policies) SLUICE_TRY_VOID(check_policy(policy));
  Workload all;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    SLUICE_TRY(Workload jobs, workload_of(scenario, sources, static_cast<std::uint64_t>(seed)));
    const Workload pieces = pieces_of(jobs, scenario.cluster.physics, static_cast<std::uint64_t>(seed));
    all.insert(all.end(), pieces.begin(), pieces.end());
    grid.workloads.push_back(std::move(jobs));
  }
  grid.bound = bound_of(all, scenario.cluster);

  const int count = static_cast<int>(grid.policies.size()) * options.seeds;
  grid.runs.assign(grid.policies.size(), std::vector<RunRecord>(options.seeds));
  SLUICE_TRY_VOID(in_parallel(count, options.threads, [&](int i) -> Result<void> {
    const int policy = i / options.seeds, seed = i % options.seeds;
    RunOptions run;
    run.seed = static_cast<std::uint64_t>(seed) + 1;
    run.incidents = scenario.incidents;
    run.timeline = options.timeline && seed == 0;
    SLUICE_TRY(grid.runs[policy][seed], run_policy(grid.policies[policy], scenario.cluster, grid.workloads[seed], run));
    return {};
  }));
  const int base = grid.column("static");
  for (const auto& runs : grid.runs) {
    std::vector<Figures> figures;
    figures.reserve(options.seeds);
    for (int seed = 0; seed < options.seeds; ++seed)
      figures.push_back(figures_of(runs[seed], grid.runs[base][seed], grid.workloads[seed], scenario.cluster));
    grid.figures.push_back(std::move(figures));
  }
  return grid;
}

}  // namespace sluice::simulator
