#include "operator/fault_simulation/cluster_run.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/base/guarded.h"
#include "src/kube/fake/crd.h"

namespace sluice::simulation {

using kube::Json;
using std::chrono::seconds;

namespace {

constexpr auto kQuiet = seconds(35);          // without a change: two decisions
constexpr auto kLongestPause = seconds(300);  // of the operator, before it tries again (act/data_worker_pool.cc)
// Time to settle after the last fault: the longest pause twice, as a Secret may change in two steps, and a training or
// a slow start twice. Then the longest pause once more, to see that nothing but looking again goes on.
constexpr auto kPatience = 3 * kLongestPause + seconds(200);
constexpr auto kAfterTimeline = seconds(20);
constexpr std::size_t kMaxTrace = 200000;

// The CRDs, read once.
const std::vector<kube::fake::Crd>& sluice_crds() {
  static const std::vector<kube::fake::Crd> kCrds = [] {
    std::vector<kube::fake::Crd> crds;
    for (const char* file : {"crds/sluice.dev_trainingjobs.yaml", "crds/sluice.dev_dataworkerpools.yaml"})
      crds.push_back(kube::fake::read_crd(file).value());
    return crds;
  }();
  return kCrds;
}

bool is_counted(const std::string& kind) { return kind != "Lease" && kind != "Event"; }

}  // namespace

ClusterRun::ClusterRun(const FaultPlan& plan, const Workload& workload, const RunOptions& options)
    : plan_(plan),
      workload_(workload),
      options_(options),
      random_(plan.seed),
      server_(clock_),
      cluster_(server_, clock_, random_, workload),
      prometheus_(std::make_shared<PrometheusModel>(server_, clock_, random_, workload)),
      oracle_(clock_) {
  for (const kube::fake::Crd& crd : sluice_crds()) server_.serve(crd);
  server_.set_resizes_pods(workload.resizes_pods);
  faults_end_ = VirtualClock::at_seconds(workload.ends_at_seconds) + kAfterTimeline;
  const bool needs_spare = plan.rates.upgrade_per_second > 0;
  machines_.resize(static_cast<std::size_t>(plan.operators) + (needs_spare ? 1 : 0));
  for (std::size_t index = 0; index < machines_.size(); ++index) {
    machines_[index].name = "operator-" + std::to_string(index);
    machines_[index].skew = seconds(index % 2 == 0 ? plan.operator_skew_seconds : -plan.operator_skew_seconds);
  }
  if (needs_spare) machines_.back().starts_at = Clock::TimePoint::max();
  cluster_.set_node_skew(seconds(plan.node_skew_seconds));
  seen_revision_ = server_.revision();
}

Outcome ClusterRun::run() {
  while (!is_over()) take_turn();
  if (is_out_of_patience()) oracle_.violated("the operator does not come to rest");
  if (next_user_action_ < workload_.timeline.size())
    oracle_.violated("the user waits in vain for " + workload_.timeline[next_user_action_].action.dump());
  oracle_.check_orphans(server_);
  oracle_.check_certificates(server_);
  oracle_.check_waiting(server_);
  if (OperatorProcess* process = leader()) oracle_.check_feeders(server_, *process->parts().board.last_round());
  outcome_.violations = oracle_.violations();
  outcome_.final_state = final_state(server_);
  outcome_.seconds = clock_.seconds();
  return std::move(outcome_);
}

bool ClusterRun::is_out_of_patience() const {
  return clock_.now() >= std::max(faults_end_, last_user_action_) + kPatience;
}

bool ClusterRun::is_over() {
  const auto since = [&](Clock::TimePoint moment) { return clock_.now() - moment; };
  if (oracle_.has_seen_storm() || is_out_of_patience()) return true;
  if (clock_.now() < faults_end_ + kQuiet || next_user_action_ < workload_.timeline.size()) return false;
  if (perturbed_ && !released_) return false;
  if (rollout_due_ != Clock::TimePoint::max()) return false;
  return (since(last_change_) >= kQuiet && is_at_rest()) ||
         (since(last_change_) >= kLongestPause + kQuiet && !cluster_.is_training());
}

// Nothing that will come is waited for: the end of a training, a leader, a pause before the next try.
bool ClusterRun::is_at_rest() {
  if (cluster_.is_training() || leader() == nullptr) return false;
  return std::all_of(machines_.begin(), machines_.end(), [](const Machine& machine) {
    if (!machine.process || !machine.process->leads()) return true;
    const auto& parts = machine.process->parts();
    const auto has_work = [](const act::Controller& controller) {
      return controller.has_ready() || controller.next_due().has_value();
    };
    return !has_work(parts.pools) && !has_work(parts.training_jobs) && !parts.decisions.is_waiting();
  });
}

// A pause that is longer than any that the operator means to make is one that it has got wrong.
void ClusterRun::check_pauses() {
  for (const Machine& machine : machines_) {
    if (!machine.process) continue;
    const auto& parts = machine.process->parts();
    for (const act::Controller* controller : {&parts.pools, &parts.training_jobs})
      if (const auto due = controller->next_due(); due && *due - clock_.now() > kLongestPause + seconds(1))
        oracle_.violated(machine.name + " pauses for longer than it may");
  }
}

OperatorProcess* ClusterRun::leader() {
  for (Machine& machine : machines_)
    if (machine.process && machine.process->leads()) return machine.process.get();
  return nullptr;
}

// One of the things that can happen now.
void ClusterRun::take_turn() {
  act_as_user();
  tick();
  std::vector<std::pair<Machine*, int>> turns;
  std::vector<int> steps;
  for (Machine& machine : machines_) {
    maintain(machine);
    if (!machine.process || machine.paused_until > clock_.now()) continue;
    steps.clear();
    machine.process->list_steps(steps);
    for (const int step : steps) turns.emplace_back(&machine, step);
  }
  const std::size_t others = cluster_.has_work() ? 1 : 0;
  if (turns.empty() && others == 0) return pass_time();
  const std::size_t choice = random_.below(turns.size() + others);
  if (choice == turns.size()) {
    say(cluster_.step());
    note_changes("the cluster", false);
  } else {
    const auto [machine, step] = turns[choice];
    const bool led = machine->process->leads();
    const auto what = guarded(ErrorCode::kInternal, machine->name, [machine = machine, step = step] {
      return Result<std::string>(machine->process->step(step));
    });
    if (!what.ok()) {
      oracle_.violated("the operator ends by an exception: " + what.error().message());
      machine->process->kill();
    }
    if (machine->process->leads() && !led) last_change_ = clock_.now();  // it may have much to put right
    say(what.ok() ? machine->name + ": " + *what : what.error().message());
    note_changes(machine->name, true);
  }
  perturb();
  // Everything takes a moment, so that whatever happens, happens before the end of time.
  clock_.advance_to(clock_.now() + std::chrono::milliseconds(1));
}

void ClusterRun::pass_time() {
  Clock::TimePoint next = std::min(next_tick_, cluster_.next_due());
  if (next_user_action_ < workload_.timeline.size())
    next = std::min(
        next, std::max(user_waits_until_, VirtualClock::at_seconds(workload_.timeline[next_user_action_].at_seconds)));
  for (const Machine& machine : machines_) {
    if (!machine.process)
      next = std::min(next, machine.starts_at);
    else
      next = std::min(next, std::max(machine.process->next_due(), machine.paused_until));
  }
  clock_.advance_to(std::max(next, clock_.now() + std::chrono::milliseconds(1)));
}

void ClusterRun::maintain(Machine& machine) {
  if (machine.process && machine.process->is_dead()) {
    say(machine.name + ": ends");
    machine.process.reset();
    machine.starts_at = clock_.now() + seconds(1 + static_cast<int>(random_.below(8)));
  }
  if (machine.view_thaws_at <= clock_.now()) {
    machine.view.frozen_at.reset();
    machine.view_thaws_at = Clock::TimePoint::max();
  }
  if (!machine.process && machine.starts_at <= clock_.now()) restart(machine);
}

void ClusterRun::restart(Machine& machine) {
  say(machine.name + ": starts");
  machine.process.reset();
  machine.process = std::make_unique<OperatorProcess>(
      Surroundings{server_, clock_, random_, prometheus_,
                   [this](const http::Request& request) { return request_fault(request); },
                   [this] { return dies_after_write(); }, options_.wrap, options_.on_request, options_.hears},
      machine.view, machine.name, machine.version);
  machine.process->set_skew(machine.skew);
}

void ClusterRun::note_changes(const std::string& who, bool by_operator) {
  for (const kube::fake::StoredChange& change : server_.changes_since(seen_revision_)) {
    seen_revision_ = change.revision;
    cluster_.on_change(change);
    oracle_.on_change(change, by_operator);
    if (is_counted(change.kind->name)) {
      if (by_operator) ++outcome_.operator_writes;
      last_change_ = clock_.now();
      outcome_.places.push_back({change.revision, change.kind->plural + " " + change.key.to_string()});
    }
    if (options_.trace)
      say("    " + std::to_string(change.revision) + " " + who +
          (change.deleted  ? " removes "
           : change.before ? " changes "
                           : " creates ") +
          change.kind->plural + " " + change.key.to_string());
  }
}

void ClusterRun::say(const std::string& what) {
  if (!options_.trace || outcome_.trace.size() >= kMaxTrace) return;
  char time[32];
  std::snprintf(time, sizeof time, "%9.3f ", clock_.seconds());
  outcome_.trace.push_back(time + what);
}

}  // namespace sluice::simulation
