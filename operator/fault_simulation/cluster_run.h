// The state of one run; simulation.h is the entry.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/fault_simulation/cluster_model.h"
#include "operator/fault_simulation/fault_plan.h"
#include "operator/fault_simulation/operator_process.h"
#include "operator/fault_simulation/oracle.h"
#include "operator/fault_simulation/prometheus_model.h"
#include "operator/fault_simulation/simulation.h"

namespace sluice::simulation {

// Thread safety: none. Called once: run().
class ClusterRun {
 public:
  ClusterRun(const FaultPlan& plan, const Workload& workload, const RunOptions& options);

  Outcome run();

  // For tests that look inside at the end.
  kube::fake::ApiServer& server() { return server_; }
  OperatorProcess* leader();
  const VirtualClock& clock() const { return clock_; }

 private:
  struct Machine {  // runs one process of the operator
    std::string name;
    kube::fake::CacheView view;
    std::unique_ptr<OperatorProcess> process;
    Clock::TimePoint starts_at;
    Clock::TimePoint paused_until;
    Clock::TimePoint view_thaws_at = Clock::TimePoint::max();
    std::chrono::seconds skew{0};  // of its wall clock, when it does not jump
    OperatorVersion version = OperatorVersion::kThis;

    bool is_spare() const { return !process && starts_at == Clock::TimePoint::max(); }  // waits for an upgrade
  };

  struct Drain {
    Clock::TimePoint next_step_at;
    bool is_reclaimed = false;  // the machine goes, and another one of its name comes
  };

  bool is_over();
  bool is_out_of_patience() const;
  bool is_at_rest();
  void check_pauses();
  void take_turn();
  void pass_time();
  void note_changes(const std::string& who, bool by_operator);
  void say(const std::string& what);

  // People.
  void act_as_user();
  bool is_awaited(const nlohmann::json& action);
  bool perform(const nlohmann::json& wanted);
  bool damage(nlohmann::json& action) const;
  kube::fake::Reply write(const nlohmann::json& action);
  kube::fake::Reply overwrite(const nlohmann::json& action);
  kube::fake::Reply put_back(const kube::ObjectKey& key);
  kube::fake::Reply correct(const nlohmann::json& action);
  kube::fake::Reply change_node(const nlohmann::json& action);

  // Faults.
  void tick();
  void strike();
  void strike_pods();
  void delete_service();
  void write_replicas();
  void age_certificates();
  void drain_node();
  void continue_drains();
  void end_drain(const std::string& name);
  Clock::TimePoint next_step_of_drain();
  void change_version();
  void roll_out(OperatorVersion version);
  void continue_rollout();
  void perturb();
  void heal();
  http::Fault request_fault(const http::Request& request);
  bool dies_after_write();
  void restart(Machine& machine);
  void maintain(Machine& machine);
  Machine& any_machine() { return machines_[random_.below(machines_.size())]; }

  const FaultPlan plan_;
  const Workload& workload_;
  const RunOptions options_;
  VirtualClock clock_;
  Random random_;
  kube::fake::ApiServer server_;
  ClusterModel cluster_;
  std::shared_ptr<PrometheusModel> prometheus_;
  Oracle oracle_;
  Outcome outcome_;
  std::vector<Machine> machines_;
  std::size_t next_user_action_ = 0;
  Clock::TimePoint user_waits_until_;
  Clock::TimePoint last_user_action_;
  std::map<kube::ObjectKey, kube::Json> overwritten_;  // pools' templates, as they were before
  std::uint64_t seen_revision_ = 0;
  int effective_writes_ = 0;
  Clock::TimePoint last_change_;  // of any counted object, by any writer
  Clock::TimePoint next_tick_;
  Clock::TimePoint faults_end_;
  bool faults_last_ = true;
  bool perturbed_ = false;
  bool released_ = false;
  Clock::TimePoint perturbed_at_;
  Clock::TimePoint metrics_heal_at_ = Clock::TimePoint::max();
  Clock::TimePoint kubelets_hear_at_ = Clock::TimePoint::max();
  std::map<std::string, Drain> drains_;  // by the adversary, by node
  OperatorVersion wanted_version_ = OperatorVersion::kThis;
  Clock::TimePoint rollout_due_ = Clock::TimePoint::max();  // its next step; max: none is under way
};

}  // namespace sluice::simulation
