// One run of Sluice's control plane with everything around it, in one thread, determined by a plan.
//
// The operator is the product's code (informers, work queues, reconcile steps, scheduler, leader election, events); the
// API server is the fake one; kubelets, controllers, Prometheus and people are models. Each turn one of the things that
// can happen now happens, chosen by the seed; when nothing can, time passes to the next moment at which something can.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/control_plane.h"
#include "operator/simulation/plan.h"

namespace sluice::simulation {

struct RunOptions {
  bool trace = false;
  control::WrapSeams wrap;  // makes the operator a broken one, to see that it is caught
};

// A change of the history, as a place for perturbations.
struct Place {
  std::uint64_t revision = 0;
  std::string object;  // "pods default/a"
};

struct Outcome {
  std::vector<std::string> violations;  // of the rules in oracle.h; empty: the run is as it should be
  nlohmann::json final_state;
  int operator_writes = 0;  // that changed something, but for leases and events
  double seconds = 0;       // of virtual time
  std::vector<Place> places;
  std::vector<std::string> trace;
};

// Thread safety: may be called from any number of threads at once.
// Errors (a workload that cannot be read) are violations.
Outcome simulate(const Plan& plan, const RunOptions& options = {});

// simulate(), and compares with what the workload ends with when nothing goes wrong (rules 6 and 7).
Outcome simulate_and_compare(const Plan& plan, const RunOptions& options = {});

// The run of a workload without any fault.
Plan undisturbed(const std::string& workload);

// Every perturbation of Sieve's three patterns of the undisturbed run.
std::vector<Plan> sieve_plans(const std::string& workload);

}  // namespace sluice::simulation
