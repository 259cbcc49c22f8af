// One run of Sluice's control plane with everything around it, in one thread, determined by a plan.
//
// The operator is the product's code (informers, work queues, reconcile steps, scheduler, leader election, events). The
// API server is the fake one. Kubelets, controllers, Prometheus and people are models. Each turn one of the possible
// events happens, chosen by the seed. When none is possible, time passes to the next moment at which one is.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/control_plane.h"
#include "operator/fault_simulation/fault_plan.h"
#include "src/http/transport.h"

namespace sluice::simulation {

// Hears each request of the operator that the API server has answered, with the status.
using RequestListener = std::function<void(const http::Request& request, int status)>;

// What an operator hears of a line that a watch brings.
using WatchHearing = std::function<std::string(std::string line)>;

struct RunOptions {
  bool trace = false;
  control::WrapSeams wrap;     // makes the operator a broken one, to see that it is caught
  WatchHearing hears;          // the same: it hears amiss; may be empty
  RequestListener on_request;  // may be empty
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
Outcome simulate(const FaultPlan& plan, const RunOptions& options = {});

// simulate(), and compares with the end of the same workload without faults (rules 6 and 7).
Outcome simulate_and_compare(const FaultPlan& plan, const RunOptions& options = {});

// The run of a workload without any fault.
FaultPlan undisturbed(const std::string& workload);

// Every perturbation of Sieve's three patterns of the undisturbed run.
std::vector<FaultPlan> sieve_plans(const std::string& workload);

}  // namespace sluice::simulation
