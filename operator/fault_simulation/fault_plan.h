// The faults of one run of the simulation. Together with the workload and the seed they determine the run: a plan in a
// file is a bug's scenario.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/fault_simulation/template_damage.h"
#include "src/base/result.h"

namespace sluice::simulation {

// Sieve's patterns: one perturbation at one place of the history, nothing else. Places are revisions of the API
// server: two runs with one seed are the same up to the perturbation.
struct Perturbation {
  enum class Kind {
    kCrash,       // the operator dies after its effective write number `at` and starts with empty memory
    kUnobserved,  // its informers do not see the changes at, ..., until: they find the result when they list again
    kStale,       // it is restarted after the change `at` on an API server that shows the time before, and catches up
  } kind = Kind::kCrash;
  std::uint64_t at = 0;
  std::uint64_t until = 0;
};

// How often things happen while faults last. Probabilities are per request or, where it says so, per second.
struct FaultRates {
  double lose_request = 0;
  double lose_answer = 0;
  double repeat = 0;
  double refuse = 0;
  double delay = 0;
  double error_page = 0;  // of a proxy, before the API server sees the request or after (error_pages.h)
  double crash_per_second = 0;
  double pause_per_second = 0;  // a process stands still for longer than its lease lasts
  double break_watch_per_second = 0;
  double garble_watch_per_second = 0;
  double stall_watch_per_second = 0;  // a replica's cache falls behind for a while
  double expire_per_second = 0;       // history is compacted: 410
  double clock_jump_per_second = 0;
  double metrics_per_second = 0;  // Prometheus is gone, or says NaN, or the past, or no answer
  double kill_pod_per_second = 0;
  double delete_service_per_second = 0;
  double write_replicas_per_second = 0;
  double refuse_resize = 0;                // of a feeder, by the API server
  double lose_resizes_per_second = 0;      // kubelets resize nothing for a while
  double age_certificates_per_second = 0;  // a job's certificates are two or three months old
  double drain_node_per_second = 0;        // for a while, or until the machine is taken back and another one comes
  double upgrade_per_second = 0;           // of the operator to another release, and back from it
};

// Thread safety: a value.
struct FaultPlan {
  std::string workload;  // name of a file in operator/fault_simulation/workloads
  std::uint64_t seed = 1;
  int operators = 1;
  FaultRates rates;
  // The lead of clocks over the API server's, to the end of the run: of the first operator's and of the nodes'. A
  // second operator's clock is behind by as much as the first one's is ahead.
  int operator_skew_seconds = 0;
  int node_skew_seconds = 0;
  std::optional<Perturbation> perturbation;
  // Of the workload's templates that may be odd, until people correct them. `stored_before`: they were stored before
  // the CRDs refused such.
  std::vector<TemplateDamage> damages;
  bool stored_before = false;

  // For scenario files; reads the text of writes(). Errors: InvalidArgument naming the key.
  nlohmann::json to_json() const;
  static Result<FaultPlan> from_json(const nlohmann::json& json);
};

// Every rate.
std::vector<double FaultRates::*> all_rates();

// The plan of a seed: workload, number of operators, rates and damages are drawn from it.
FaultPlan random_plan(std::uint64_t seed);

}  // namespace sluice::simulation
