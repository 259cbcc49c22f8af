// The part of ClusterRun in which things go wrong.
#include <nlohmann/json.hpp>

#include "operator/act/certificates.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/training_job.h"
#include "operator/fault_simulation/cluster_run.h"
#include "operator/fault_simulation/error_pages.h"

namespace sluice::simulation {

using kube::Json;
using std::chrono::seconds;

namespace {

constexpr auto kStaleFor = seconds(20);
constexpr auto kUnobservedAtMost = seconds(60);
constexpr auto kBookmarkEvery = 60;

}  // namespace

// Once a second of virtual time.
void ClusterRun::tick() {
  if (clock_.now() < next_tick_) return;
  next_tick_ = clock_.now() + seconds(1);
  if (faults_last_ && clock_.now() >= faults_end_) heal();
  if (metrics_heal_at_ <= clock_.now()) {
    prometheus_->set_fault(MetricsFault::kNone);
    metrics_heal_at_ = Clock::TimePoint::max();
  }
  if (kubelets_hear_at_ <= clock_.now()) {
    cluster_.set_kubelets_deaf(false);
    kubelets_hear_at_ = Clock::TimePoint::max();
  }
  if (static_cast<int>(clock_.seconds()) % kBookmarkEvery == 0) server_.send_bookmarks();
  continue_drains();
  continue_rollout();
  if (faults_last_) strike();
  note_changes("the adversary", false);
  check_pauses();
}

void ClusterRun::strike() {
  const FaultRates& rates = plan_.rates;
  const auto happens = [&](double rate) { return rate > 0 && random_.chance(rate); };
  const auto later = [&](int least, int most) {
    return clock_.now() + seconds(least + static_cast<int>(random_.below(static_cast<std::uint64_t>(most - least))));
  };
  if (happens(rates.crash_per_second)) {
    Machine& machine = any_machine();
    if (machine.process) machine.process->kill();
  }
  if (happens(rates.pause_per_second)) {
    any_machine().paused_until = later(20, 100);
    say("a process stands still");
  }
  if (happens(rates.break_watch_per_second)) {
    Machine& machine = any_machine();
    if (machine.process) machine.process->break_watch(random_.below(64));
  }
  if (happens(rates.garble_watch_per_second)) {
    Machine& machine = any_machine();
    if (machine.process) machine.process->garble_watch(random_.below(64), draw_watch_line(random_));
  }
  if (happens(rates.stall_watch_per_second)) {
    Machine& machine = any_machine();
    if (!machine.view.frozen_at) machine.view.frozen_at = server_.revision();
    machine.view_thaws_at = later(1, 25);
    say("a cache falls behind");
  }
  if (happens(rates.expire_per_second)) server_.compact(server_.revision());
  if (happens(rates.clock_jump_per_second)) {
    Machine& machine = any_machine();
    if (machine.process) machine.process->set_skew(seconds(static_cast<int>(random_.below(7200)) - 3600));
  }
  if (happens(rates.metrics_per_second)) {
    prometheus_->set_fault(static_cast<MetricsFault>(1 + random_.below(kMetricsFaults)));
    metrics_heal_at_ = later(5, 40);
    say("Prometheus fails");
  }
  if (happens(rates.lose_resizes_per_second)) {
    cluster_.set_kubelets_deaf(true);
    kubelets_hear_at_ = later(20, 150);
    say("kubelets resize nothing");
  }
  if (happens(rates.kill_pod_per_second)) strike_pods();
  if (happens(rates.delete_service_per_second)) delete_service();
  if (happens(rates.write_replicas_per_second)) write_replicas();
  if (happens(rates.age_certificates_per_second)) age_certificates();
  if (happens(rates.drain_node_per_second)) drain_node();
  if (happens(rates.upgrade_per_second)) change_version();
}

void ClusterRun::strike_pods() {
  // Those that have ended stay: no controller makes a trainer's finished pod again, so its loss would count as a
  // difference.
  kube::Store::Objects pods = server_.all(kube::kPods);
  std::erase_if(pods, [](const auto& entry) { return api::Pod(*entry.second).ended(); });
  if (pods.empty()) return;
  auto victim = pods.begin();
  std::advance(victim, random_.below(pods.size()));
  const bool worker = api::Pod(*victim->second).is_worker();
  if (worker && random_.chance(0.5)) {
    server_.modify(
        kube::kPods, victim->first,
        [](Json& pod) {
          pod["status"]["phase"] = "Failed";
          pod["status"]["reason"] = "Evicted";
        },
        "status");
  } else {
    server_.remove(kube::kPods, victim->first);
  }
}

void ClusterRun::delete_service() {
  const kube::Store::Objects services = server_.all(kube::kServices);
  if (services.empty()) return;
  auto service = services.begin();
  std::advance(service, random_.below(services.size()));
  server_.remove(kube::kServices, service->first);
}

void ClusterRun::write_replicas() {
  const kube::Store::Objects pools = server_.all(kube::kDataWorkerPools);
  if (pools.empty()) return;
  auto pool = pools.begin();
  std::advance(pool, random_.below(pools.size()));
  // In mode Recommend the number is a person's, and stays as written.
  const auto job = server_.get(kube::kTrainingJobs, pool->first);
  if (!job || api::TrainingJob(*job).mode() != "Auto") return;
  const auto replicas = random_.below(6);
  server_.modify(kube::kDataWorkerPools, pool->first, [&](Json& object) { object["spec"]["replicas"] = replicas; });
}

void ClusterRun::age_certificates() {
  const kube::Store::Objects secrets = server_.all(kube::kSecrets);
  if (secrets.empty()) return;
  auto secret = secrets.begin();
  std::advance(secret, random_.below(secrets.size()));
  const auto made = clock_.wall_now() - std::chrono::hours(24 * (61 + static_cast<int>(random_.below(40))));
  const auto identity = act::make_tls_identity("aged", api::kTlsServerName, made);
  server_.modify(kube::kSecrets, secret->first, [&](Json& object) {
    object["data"] = Json::object();
    object["stringData"] = {{"ca.crt", identity->authority_certificate},
                            {"tls.crt", identity->certificate},
                            {"tls.key", identity->private_key}};
  });
  say("the certificates of " + secret->first.to_string() + " grow old");
}

void ClusterRun::heal() {
  faults_last_ = false;
  say("the faults end");
  prometheus_->set_fault(MetricsFault::kNone);
  cluster_.set_kubelets_deaf(false);
  for (const auto& [name, drain] : std::map(drains_)) end_drain(name);
  if (wanted_version_ != OperatorVersion::kThis) roll_out(OperatorVersion::kThis);
  for (Machine& machine : machines_) {
    machine.view.frozen_at.reset();
    machine.paused_until = clock_.now();
    if (machine.process) machine.process->set_skew(machine.skew);
  }
}

http::Fault ClusterRun::request_fault(const http::Request& request) {
  http::Fault fault;
  if (!faults_last_) return fault;
  const FaultRates& rates = plan_.rates;
  const auto happens = [&](double rate) { return rate > 0 && random_.chance(rate); };
  fault.lose_request = happens(rates.lose_request);
  fault.lose_answer = happens(rates.lose_answer);
  fault.repeat = happens(rates.repeat);
  if (happens(rates.delay)) fault.delay_after = std::chrono::milliseconds(random_.below(4000));
  if (happens(rates.refuse)) {
    static constexpr int kStatuses[] = {429, 500, 503};
    fault.refuse = http::Response{kStatuses[random_.below(3)], {}, "the simulation refuses"};
  }
  if (happens(rates.error_page)) (random_.chance(0.5) ? fault.refuse : fault.replace_answer) = draw_error_page(random_);
  if (request.target.find("/resize") != std::string::npos && happens(rates.refuse_resize))
    fault.refuse = http::Response{random_.chance(0.5) ? 403 : 422, {}, "the simulation refuses"};
  return fault;
}

bool ClusterRun::dies_after_write() {
  ++effective_writes_;
  const bool planned = plan_.perturbation && plan_.perturbation->kind == Perturbation::Kind::kCrash;
  return planned && static_cast<std::uint64_t>(effective_writes_) == plan_.perturbation->at;
}

// Sieve's patterns, as soon as their place in the history is reached; nothing has been delivered of it yet.
void ClusterRun::perturb() {
  if (!plan_.perturbation || plan_.perturbation->kind == Perturbation::Kind::kCrash || released_) return;
  const Perturbation& perturbation = *plan_.perturbation;
  Machine& machine = machines_.front();
  if (!perturbed_) {
    if (server_.revision() < perturbation.at) return;
    perturbed_ = true;
    perturbed_at_ = clock_.now();
    machine.view.frozen_at = perturbation.at - 1;
    say("the view freezes before " + std::to_string(perturbation.at));
    if (perturbation.kind == Perturbation::Kind::kStale) {
      machine.view.lies = true;
      restart(machine);
    }
    return;
  }
  const auto since = clock_.now() - perturbed_at_;
  const bool unobserved = perturbation.kind == Perturbation::Kind::kUnobserved;
  if (unobserved ? server_.revision() < perturbation.until && since < kUnobservedAtMost : since < kStaleFor) return;
  released_ = true;
  last_change_ = clock_.now();  // the operator sees what it has missed
  machine.view = {};
  say("the view thaws");
  // What was missed must not be told after all: the history is gone, and only the result can be listed.
  if (!unobserved || !machine.process) return;
  server_.compact(server_.revision());
  for (std::size_t index = 0; index < machine.process->parts().informers.size(); ++index)
    machine.process->break_watch(index);
}

}  // namespace sluice::simulation
