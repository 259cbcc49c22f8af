#include "operator/fault_simulation/operator_process.h"

#include <nlohmann/json.hpp>

namespace sluice::simulation {

namespace {

// Numbers of steps: these, then one per watch.
enum Step : int { kElection, kTrainingJobs, kPools, kDecision, kEvents, kFirstWatch };

const http::Response kEnd{200, {}, ""};

}  // namespace

control::Config simulated_config() {
  control::Config config;
  config.image = "sluice";
  config.decision_interval = std::chrono::seconds(15);
  config.metrics = model_metrics();
  config.scheduler.max_age_seconds = config.metrics.stale_seconds;
  // Renewals are most of what a leader writes: rarer ones make room for runs.
  config.leader_election = {
      true, "default", "sluice-operator", std::chrono::seconds(60), std::chrono::seconds(40), std::chrono::seconds(10)};
  return config;
}

// The process's way to the API server: counts its writes, and ends with it.
class OperatorProcess::Connection final : public http::Transport {
 public:
  Connection(OperatorProcess& process, const kube::fake::CacheView& view)
      : process_(process), server_(process.surroundings_.server), transport_(server_, &view) {}

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds timeout,
                              std::stop_token stop) override {
    if (process_.dead_) return unavailable("the process is dead");
    const std::uint64_t before = server_.revision();
    auto response = transport_.send(request, timeout, std::move(stop));
    if (response.ok()) process_.note(request, response->status);
    const bool wrote = server_.revision() != before;
    // Crashes are placed at writes of objects: leases and events do not count.
    const bool counts = wrote && request.target.find("/leases") == std::string::npos &&
                        request.target.find("/events") == std::string::npos;
    if (counts && process_.surroundings_.dies_after_write()) {
      process_.dead_ = true;
      return unavailable("the process is dead");
    }
    return response;
  }

  Result<http::Response> stream(const http::Request&, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token) override {
    return internal_error("the simulation carries watches itself");
  }

 private:
  OperatorProcess& process_;
  kube::fake::ApiServer& server_;
  kube::fake::FakeTransport transport_;
};

OperatorProcess::OperatorProcess(const Surroundings& surroundings, const kube::fake::CacheView& view, std::string name,
                                 OperatorVersion version)
    : surroundings_(surroundings),
      view_(view),
      name_(std::move(name)),
      clock_(surroundings.clock),
      config_(config_of(version)) {
  const kube::UniformRandom random = [this] { return surroundings_.random.unit(); };
  auto connection = std::make_shared<Connection>(*this, view_);
  client_ = std::make_unique<kube::Client>(http::with_faults(connection, clock_, surroundings_.request_fault), clock_);
  plane_ = std::make_unique<control::ControlPlane>(config_, *client_,
                                                   std::make_shared<const prom::Client>(surroundings_.prometheus),
                                                   clock_, random, name_, seams_of(version, surroundings_.wrap));
  parts_.emplace(plane_->parts());
  for (kube::Informer* informer : parts_->informers) watches_.push_back({informer, nullptr, nullptr, {}, {}});
  const control::LeaderElection& election = config_.leader_election;
  elector_ = std::make_unique<kube::LeaderElector>(
      *client_, clock_, random,
      kube::LeaderElectionOptions{
          {election.lease_namespace, election.name}, name_, election.lease, election.renew, election.retry},
      kube::LeaderElector::Callbacks{.on_acquired = [this] { look_again(); }, .on_lost = [] {}});
  plane_->write_only_while([this] { return leads(); });
  election_due_ = clock_.now();
}

OperatorProcess::~OperatorProcess() = default;

bool OperatorProcess::watch_can_step(const Watch& watch) const {
  if (watch.session == nullptr) return watch.paused_until <= clock_.now();
  return watch.session->has_line() || watch.session->state() != kube::fake::WatchSession::State::kOpen ||
         watch.ends_at <= clock_.now();
}

void OperatorProcess::list_steps(std::vector<int>& steps) const {
  if (election_due_ <= clock_.now()) steps.push_back(kElection);
  if (leads() && plane_->ready()) {
    const auto& parts = *parts_;
    const auto ready = [&](const act::Controller& controller) {
      const auto due = controller.next_due();
      return controller.has_ready() || (due && *due <= clock_.now());
    };
    if (ready(parts.training_jobs)) steps.push_back(kTrainingJobs);
    if (ready(parts.pools)) steps.push_back(kPools);
    if (parts.decisions.next_due() <= clock_.now()) steps.push_back(kDecision);
    if (events_waiting_) steps.push_back(kEvents);
  }
  for (std::size_t index = 0; index < watches_.size(); ++index)
    if (watch_can_step(watches_[index])) steps.push_back(kFirstWatch + static_cast<int>(index));
}

std::string OperatorProcess::step(int step) {
  const auto& parts = *parts_;
  const auto reconcile = [&](act::Controller& controller) {
    events_waiting_ = true;
    return controller.step();
  };
  switch (step) {
    case kElection: {
      const bool led = leads();
      const auto pause = elector_->step();
      // A process that has lost its lease exits.
      if (!pause.ok())
        dead_ = true;
      else
        election_due_ = clock_.now() + *pause;
      return std::string("election") + (dead_ ? ": lost" : leads() && !led ? ": leads" : "");
    }
    case kTrainingJobs: reconcile(parts.training_jobs); return "reconciles a TrainingJob";
    case kPools: reconcile(parts.pools); return "reconciles a pool";
    case kDecision:
      parts.decisions.decide_once({});
      events_waiting_ = true;
      return "decides";
    case kEvents: events_waiting_ = parts.events.step(); return "writes an event";
    default: return step_watch(watches_[static_cast<std::size_t>(step - kFirstWatch)]);
  }
}

std::string OperatorProcess::step_watch(Watch& watch) {
  const std::string plural(watch.informer->reflector().resource().plural);
  if (watch.session != nullptr) return plural + ": " + deliver(watch);
  const kube::ReflectorStep wanted = watch.informer->reflector().next();
  switch (wanted.kind) {
    case kube::ReflectorStep::Kind::kPause:
      watch.paused_until = clock_.now() + wanted.pause;
      return plural + ": pauses";
    case kube::ReflectorStep::Kind::kList:
      watch.informer->reflector().on_page(client_->list_page(watch.informer->reflector().resource(), wanted.list));
      return plural + ": lists";
    case kube::ReflectorStep::Kind::kWatch: open_watch(watch, wanted.watch); return plural + ": watches";
  }
  return "";
}

void OperatorProcess::note(const http::Request& request, int status) const {
  if (surroundings_.on_request) surroundings_.on_request(request, status);
}

void OperatorProcess::open_watch(Watch& watch, const kube::WatchOptions& options) {
  kube::Reflector& reflector = watch.informer->reflector();
  watch.decoder = std::make_unique<kube::WatchDecoder>(
      "watch", [&reflector](kube::WatchEvent&& event) { return reflector.on_event(std::move(event)); });
  http::Response refusal;
  const http::Request request = client_->watch_request(reflector.resource(), options);
  watch.session = surroundings_.server.watch(request, &view_, refusal);
  note(request, watch.session == nullptr ? refusal.status : kEnd.status);
  watch.ends_at = clock_.now() + options.timeout;
  if (watch.session == nullptr) end_watch(watch, refusal);
}

// One event at a time: whatever else can happen may happen in between.
std::string OperatorProcess::deliver(Watch& watch) {
  using State = kube::fake::WatchSession::State;
  if (const auto line = watch.session->next_line()) {
    const Result<void> taken = watch.decoder->on_bytes(surroundings_.hears ? surroundings_.hears(*line) : *line);
    if (!taken.ok()) end_watch(watch, taken.error());
    return taken.ok() ? "sees " + line->substr(0, line->find(',')) : taken.error().to_string();
  }
  const bool broken = watch.session->state() == State::kBroken;
  end_watch(watch, broken ? Result<http::Response>(unavailable("connection lost")) : Result<http::Response>(kEnd));
  return broken ? "the connection breaks" : "the watch ends";
}

void OperatorProcess::end_watch(Watch& watch, const Result<http::Response>& response) {
  watch.session.reset();
  const auto decoder = std::move(watch.decoder);
  watch.informer->reflector().on_watch_end(decoder->end(response));
}

void OperatorProcess::look_again() {
  for (Watch& watch : watches_) {
    watch.session.reset();
    watch.decoder.reset();
    watch.paused_until = {};
    watch.informer->look_again();
  }
}

Clock::TimePoint OperatorProcess::next_due() const {
  Clock::TimePoint due = election_due_;
  if (leads() && plane_->ready()) {
    const auto& parts = *parts_;
    for (const act::Controller* controller : {&parts.training_jobs, &parts.pools})
      if (const auto next = controller->next_due()) due = std::min(due, *next);
    due = std::min(due, parts.decisions.next_due());
  }
  for (const Watch& watch : watches_) due = std::min(due, watch.session ? watch.ends_at : watch.paused_until);
  return due;
}

void OperatorProcess::stop() {
  if (!dead_) elector_->release();
  dead_ = true;
}

void OperatorProcess::break_watch(std::size_t which) {
  Watch& watch = watches_[which % watches_.size()];
  if (watch.session != nullptr) watch.session->break_off();
}

void OperatorProcess::garble_watch(std::size_t which, const std::string& line) {
  Watch& watch = watches_[which % watches_.size()];
  if (watch.session == nullptr) return;
  const Result<void> taken = watch.decoder->on_bytes(line + "\n");
  end_watch(watch, taken.ok() ? unavailable("connection lost") : taken.error());
}

}  // namespace sluice::simulation
