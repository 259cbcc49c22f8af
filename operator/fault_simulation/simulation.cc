#include "operator/fault_simulation/simulation.h"

#include <map>
#include <mutex>

#include "operator/fault_simulation/cluster_run.h"
#include "src/base/guarded.h"

namespace sluice::simulation {

using nlohmann::json;

namespace {

constexpr int kWritesPerUndisturbedWrite = 12;  // bounded is bounded; storms are thousands
constexpr int kWritesAtLeast = 400;

// Of a workload without faults; computed once.
const Outcome& undisturbed_outcome(const std::string& workload) {
  static std::mutex mutex;
  static std::map<std::string, Outcome> known;
  std::lock_guard lock(mutex);
  const auto found = known.find(workload);
  return found != known.end() ? found->second : known[workload] = simulate(undisturbed(workload));
}

// A job that hardly waits keeps the workers that it has, however it came to them. How many they are is no difference.
bool is_number_of_workers(const json& difference) {
  const std::string path = difference.at("path");
  const bool is_of_pool = path.starts_with("/DataWorkerPool ");
  const bool is_of_job = path.starts_with("/TrainingJob ");
  return (is_of_pool && (path.ends_with("replicas") || path.ends_with("ready"))) ||
         (is_of_job && path.find("workers") != std::string::npos) || path.ends_with(" worker Running");
}

}  // namespace

FaultPlan undisturbed(const std::string& workload) {
  FaultPlan plan;
  plan.workload = workload;
  return plan;
}

Outcome simulate(const FaultPlan& plan, const RunOptions& options) {
  const auto found = workload(plan.workload);
  if (!found.ok()) {
    Outcome outcome;
    outcome.violations.push_back(found.error().to_string());
    return outcome;
  }
  auto run = guarded(ErrorCode::kInternal, "the simulation itself",
                     [&] { return Result<Outcome>(ClusterRun(plan, **found, options).run()); });
  if (run.ok()) return std::move(*run);
  Outcome outcome;
  outcome.violations.push_back(run.error().message());
  return outcome;
}

Outcome simulate_and_compare(const FaultPlan& plan, const RunOptions& options) {
  const Outcome& wanted = undisturbed_outcome(plan.workload);
  Outcome outcome = simulate(plan, options);
  const auto found = workload(plan.workload);
  const bool is_path_dependent = found.ok() && (*found)->path_dependent;
  if (!is_path_dependent || plan.perturbation) {
    for (const json& difference : json::diff(wanted.final_state, outcome.final_state))
      if (!is_path_dependent || !is_number_of_workers(difference))
        outcome.violations.push_back("ends in another state: " + difference.dump());
  } else {
    for (const auto& [what, count] : outcome.final_state.items())
      if (what.find("Pending") != std::string::npos && !wanted.final_state.contains(what))
        outcome.violations.push_back("is left waiting: " + what);
  }
  const int most = std::max(kWritesAtLeast, kWritesPerUndisturbedWrite * wanted.operator_writes);
  if (outcome.operator_writes > most)
    outcome.violations.push_back("the operator has written " + std::to_string(outcome.operator_writes) +
                                 " times; undisturbed " + std::to_string(wanted.operator_writes) + " times");
  return outcome;
}

std::vector<FaultPlan> sieve_plans(const std::string& workload) {
  const Outcome& reference = undisturbed_outcome(workload);
  std::vector<FaultPlan> plans;
  const auto add = [&](Perturbation::Kind kind, std::uint64_t at, std::uint64_t until) {
    FaultPlan plan = undisturbed(workload);
    plan.perturbation = Perturbation{kind, at, until};
    plans.push_back(std::move(plan));
  };
  for (int write = 1; write <= reference.operator_writes; ++write)
    add(Perturbation::Kind::kCrash, static_cast<std::uint64_t>(write), 0);
  std::map<std::string, std::uint64_t> last;  // change of the object
  for (const Place& place : reference.places) {
    if (const auto before = last.find(place.object); before != last.end())
      add(Perturbation::Kind::kUnobserved, before->second, place.revision);
    last[place.object] = place.revision;
    add(Perturbation::Kind::kStale, place.revision, 0);
  }
  return plans;
}

}  // namespace sluice::simulation
