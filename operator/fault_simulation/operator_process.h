// One process of the operator in a simulation: the product's whole control plane, driven step by step. Network and
// clock are the simulation's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/control_plane.h"
#include "operator/fault_simulation/operator_versions.h"
#include "operator/fault_simulation/prometheus_model.h"
#include "operator/fault_simulation/random.h"
#include "operator/fault_simulation/simulation.h"
#include "operator/fault_simulation/virtual_clock.h"
#include "src/http/faults.h"
#include "src/kube/fake/fake_transport.h"
#include "src/kube/fake/watch_session.h"
#include "src/kube/leader_election.h"
#include "src/kube/watch.h"

namespace sluice::simulation {

// The world around the processes; all references outlive them.
struct Surroundings {
  kube::fake::ApiServer& server;
  const VirtualClock& clock;
  Random& random;
  std::shared_ptr<PrometheusModel> prometheus;
  http::FaultPlan request_fault;  // of unary requests to the API server
  // A write that changed something has reached the server; true: the process dies before it hears of it.
  std::function<bool()> dies_after_write;
  control::WrapSeams wrap;
  RequestListener on_request;  // may be empty
  WatchHearing hears;          // may be empty
};

// Thread safety: none. A process that is dead does nothing any more, and is to be destroyed.
class OperatorProcess {
 public:
  // REQUIRES: the view (of the API server's replica that the process talks to) outlives the process.
  OperatorProcess(const Surroundings& surroundings, const kube::fake::CacheView& view, std::string name,
                  OperatorVersion version);
  ~OperatorProcess();

  const std::string& name() const { return name_; }
  bool is_dead() const { return dead_; }
  bool leads() const { return elector_->is_leader(); }

  // The numbers of the steps that can be taken now; opaque.
  void list_steps(std::vector<int>& steps) const;
  // REQUIRES: one of list_steps(). Returns the action in words, for the trace.
  std::string step(int step);
  // When something becomes possible that is not now.
  Clock::TimePoint next_due() const;

  void kill() { dead_ = true; }
  // Ends as a process that is told to: a lease that it has is free at once.
  void stop();
  void set_skew(std::chrono::seconds skew) { clock_.set_skew(skew); }
  // The connection of one of the watches breaks; `which` counts modulo their number.
  void break_watch(std::size_t which);
  // The same, after a line that the API server did not write.
  void garble_watch(std::size_t which, const std::string& line);
  const control::ControlPlane::Parts& parts() const { return *parts_; }

 private:
  class Connection;
  struct Watch {
    kube::Informer* informer;
    std::unique_ptr<kube::WatchDecoder> decoder;
    std::unique_ptr<kube::fake::WatchSession> session;
    Clock::TimePoint ends_at;
    Clock::TimePoint paused_until;
  };

  bool watch_can_step(const Watch& watch) const;
  std::string step_watch(Watch& watch);
  void note(const http::Request& request, int status) const;
  void look_again();
  void open_watch(Watch& watch, const kube::WatchOptions& options);
  std::string deliver(Watch& watch);
  void end_watch(Watch& watch, const Result<http::Response>& response);

  const Surroundings surroundings_;
  const kube::fake::CacheView& view_;
  const std::string name_;
  SkewedClock clock_;
  const control::Config config_;
  bool dead_ = false;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<control::ControlPlane> plane_;
  std::optional<control::ControlPlane::Parts> parts_;
  std::vector<Watch> watches_;
  std::unique_ptr<kube::LeaderElector> elector_;
  Clock::TimePoint election_due_;
  bool events_waiting_ = true;
};

// The operator's configuration in a simulation.
control::Config simulated_config();

}  // namespace sluice::simulation
