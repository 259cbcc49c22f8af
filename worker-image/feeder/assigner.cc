#include "worker-image/feeder/assigner.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::feeder {
namespace {

using TimePoint = Dispatch::TimePoint;

constexpr double kUnmeasuredSeconds = 0.1;           // of a batch, before any executor was measured
constexpr std::chrono::milliseconds kLateSlack{20};  // the clock of a busy machine is no better

// What took longer than expected may take as much longer again.
TimePoint finish_of_running(TimePoint started, double expected_seconds, TimePoint now) {
  const TimePoint finish = started + duration(expected_seconds);
  return finish >= now ? finish : now + (now - finish);
}

}  // namespace

Assigner::Assigner(Dispatch& dispatch, TimePoint now) : dispatch_(dispatch), now_(now) {
  for (auto& [id, executor] : dispatch_.executors_) {
    mark_started(executor);
    free_executors_ += dispatch_.has_room(executor);
  }
}

void Assigner::mark_started(Dispatch::Executor& executor) const {
  std::size_t threads_before = 0;
  std::map<PipelineNumber, std::size_t> before;  // of pipelines that wait
  for (Dispatch::Attempt& attempt : executor.attempts) {
    const auto own = dispatch_.places(executor, attempt.pipeline, executor.threads);
    std::size_t& before_it = own ? before[attempt.pipeline] : threads_before;
    const bool runs = before_it < (own ? *own : executor.threads_now());
    before_it += attempt.threads;
    if (runs && !attempt.started) attempt.started = now_;
  }
}

void Assigner::lay_out(ExecutorId id, Dispatch::Executor& executor) {
  Lane& lane = lanes_[id];
  lane.executor = &executor;
  lane.finishes.resize(executor.attempts.size());
  for (std::size_t i = 0; i < executor.attempts.size(); ++i) {
    Dispatch::Attempt& attempt = executor.attempts[i];
    if (!attempt.started) continue;
    if (const double fastest = fastest_sample_seconds(attempt.pipeline); fastest > 0 && !attempt.expected_seconds) {
      attempt.expected_seconds = fastest * static_cast<double>(attempt.samples) / static_cast<double>(attempt.threads);
      attempt.late_at = *attempt.started + duration(*attempt.expected_seconds * kUnknownLateFactor) + kLateSlack;
    }
    const double seconds = attempt.expected_seconds.value_or(kUnmeasuredSeconds);
    lane.finishes[i] = finish_of_running(*attempt.started, seconds, now_);
    Places& own = unfilled_places(lane, attempt.pipeline);
    own.add(lane.finishes[i], &own == &lane.threads ? std::min(attempt.threads, executor.threads) : attempt.threads);
  }
  if (lane.threads.size() < executor.threads_now())
    lane.threads.add(now_, executor.threads_now() - lane.threads.size());
  for (auto& [pipeline, own] : lane.places) {
    const std::size_t most = *dispatch_.places(executor, pipeline, executor.threads);
    if (own.size() < most) own.add(now_, most - own.size());
  }
  for (std::size_t i = 0; i < executor.attempts.size(); ++i) {
    const Dispatch::Attempt& attempt = executor.attempts[i];
    if (attempt.started) continue;
    lane.finishes[i] =
        places(lane, attempt.pipeline).take(attempt.expected_seconds.value_or(kUnmeasuredSeconds), attempt.threads);
  }
}

std::vector<Assignment> Assigner::run() {
  if (free_executors_ == 0) return {};
  for (auto& [id, executor] : dispatch_.executors_) lay_out(id, executor);
  for (auto& [id, client] : dispatch_.clients_) {
    Queue& queue = queues_[id];
    queue.client = &client;
    queue.fill = client.held + client.assigned.size();
    for (const auto& [number, stream] : client.streams) {
      for (const auto& [virtual_worker, executor] : stream.homes) ++residents_[executor];
    }
    std::set_union(client.pending.begin(), client.pending.end(), client.assigned.begin(), client.assigned.end(),
                   std::back_inserter(queue.requests));
  }
  std::vector<RequestId> others;  // neither pending nor heads
  while (free_executors_ > 0) {
    Queue* const queue = emptiest_queue();
    if (queue == nullptr) break;
    const RequestId id = queue->requests[queue->next++];
    Dispatch::Request& request = dispatch_.requests_.at(id);
    const bool is_head = queue->streams.insert(request.stream).second;
    if (must_wait(*queue, request)) continue;
    if (request.attempts.empty()) {
      if (has_its_share(*queue->client, request.pipeline)) continue;
      queue->fill += place(id, request);
    } else if (is_head) {
      hedge(id, request, true);
    } else {
      others.push_back(id);
    }
  }
  // With the credits that are left now nothing else can be done.
  for (const RequestId id : others) {
    if (free_executors_ > 0) hedge(id, dispatch_.requests_.at(id), false);
  }
  if (free_executors_ > 0 && dispatch_.pending() > 0) probe();
  return std::move(started_);
}

Assigner::Queue* Assigner::emptiest_queue() {
  Queue* emptiest = nullptr;
  for (auto& [id, queue] : queues_) {
    if (queue.next == queue.requests.size()) continue;
    if (emptiest == nullptr || queue.fill < emptiest->fill) emptiest = &queue;
  }
  return emptiest;
}

bool Assigner::place_at_home(RequestId id, Dispatch::Request& request) {
  const auto chosen = home(request);
  Lane& lane = chosen->second;
  if (lane.executor->is_loading(request.pipeline)) return false;
  const Choice choice = choice_of(chosen, request);
  if (!dispatch_.can_start(*lane.executor, request.pipeline)) {
    places(lane, request.pipeline).take(choice.expected.seconds, choice.expected.threads);
  } else {
    start(id, request, choice, AttemptKind::kFirst);
  }
  return true;
}

Assigner::Lanes::iterator Assigner::home(const Dispatch::Request& request) {
  if (!request.virtual_worker->is_portable || request.blamed) return lanes_.find(kLocalExecutor);
  auto& homes = dispatch_.clients_.at(request.client).streams.at(request.stream).homes;
  const auto known = homes.find(request.virtual_worker->number);
  if (known != homes.end()) {
    const auto lane = lanes_.find(known->second);
    if (lane != lanes_.end() && can_run(lane, request.pipeline)) return lane;
    --residents_[known->second];
  }
  const auto chosen = new_home(request);
  homes[request.virtual_worker->number] = chosen->first;
  ++residents_[chosen->first];
  return chosen;
}

Assigner::Lanes::iterator Assigner::new_home(const Dispatch::Request& request) {
  auto best = lanes_.find(kLocalExecutor);
  double best_seconds = std::numeric_limits<double>::infinity();
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {  // local has the smallest id: it wins ties
    if (!can_run(lane, request.pipeline)) continue;
    const double seconds = expected(lane, request).seconds * static_cast<double>(residents_[lane->first] + 1) /
                           static_cast<double>(lane->second.executor->threads);
    if (seconds >= best_seconds) continue;
    best = lane;
    best_seconds = seconds;
  }
  return best;
}

bool Assigner::place(RequestId id, Dispatch::Request& request) {
  if (request.virtual_worker) return place_at_home(id, request);
  auto choice = first_to_finish(request, false);
  if (!choice) return false;
  if (!dispatch_.can_start(*choice->lane->second.executor, request.pipeline)) {
    const auto in_time = first_to_finish(request, true);
    if (!in_time || in_time->finish > due(request)) {
      places(choice->lane->second, request.pipeline).take(choice->expected.seconds, choice->expected.threads);
      return true;
    }
    choice = in_time;
  }
  start(id, request, *choice, AttemptKind::kFirst);
  return true;
}

void Assigner::hedge(RequestId id, Dispatch::Request& request, bool is_head) {
  const std::size_t attempts = request.attempts.size() - request.probe.has_value();
  if (request.virtual_worker || attempts > (is_head ? 2 : 1)) return;
  bool is_late = true;
  TimePoint finish = TimePoint::max();
  for (const ExecutorId executor : request.attempts) {
    if (executor == request.probe) continue;
    const Lane& holder = lanes_.at(executor);
    const auto& held = holder.executor->attempts;
    const auto attempt = std::find_if(held.begin(), held.end(), [&](const auto& a) { return a.request == id; });
    is_late &= now_ > attempt->late_at;
    finish = std::min(finish, holder.finishes[static_cast<std::size_t>(attempt - held.begin())]);
  }
  if ((!is_head && !is_late) || finish <= due(request)) return;
  const auto choice = attempts == 1 ? first_to_finish(request, true) : local(request);
  if (!choice || !choice->expected.measured) return;
  if (!is_late && choice->finish - now_ > (finish - now_) / 2) return;
  start(id, request, *choice, AttemptKind::kHedge);
}

std::optional<Assigner::Choice> Assigner::local(const Dispatch::Request& request) {
  const auto lane = lanes_.find(kLocalExecutor);
  if (lane == lanes_.end() || !dispatch_.can_start(*lane->second.executor, request.pipeline) || !may_run(lane, request))
    return std::nullopt;
  return choice_of(lane, request);
}

Assigner::Choice Assigner::choice_of(Lanes::iterator lane, const Dispatch::Request& request) {
  const Expected time = expected(lane, request);
  return {lane, time, places(lane->second, request.pipeline).finish(time.seconds, time.threads)};
}

Places& Assigner::unfilled_places(Lane& lane, PipelineNumber pipeline) const {
  return dispatch_.waits_.contains(pipeline) ? lane.places[pipeline] : lane.threads;
}

Places& Assigner::places(Lane& lane, PipelineNumber pipeline) const {
  Places& own = unfilled_places(lane, pipeline);
  if (own.size() == 0)
    own.add(now_, std::max<std::size_t>(1, *dispatch_.places(*lane.executor, pipeline, lane.executor->threads)));
  return own;
}

void Assigner::probe() {
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (lane->first != kLocalExecutor && dispatch_.has_room(*lane->second.executor)) probe(lane);
  }
}

void Assigner::probe(Lanes::iterator lane) {
  const Dispatch::Executor& executor = *lane->second.executor;
  std::set<PipelineNumber> known;
  for (const Dispatch::Attempt& attempt : executor.attempts) known.insert(attempt.pipeline);
  for (const auto& [pipeline, skill] : executor.skills) {
    if (skill.time.is_known(now_)) known.insert(pipeline);
  }
  // The youngest: a pending one is needed last, and the holder of another has spent the least on it.
  for (auto& [client_id, client] : dispatch_.clients_) {
    for (const auto* requests : {&client.pending, &client.assigned}) {
      for (auto id = requests->rbegin(); id != requests->rend(); ++id) {
        Dispatch::Request& request = dispatch_.requests_.at(*id);
        const bool is_measured = fastest_sample_seconds(request.pipeline) > 0;
        if (is_measured == request.attempts.empty() || request.probe || request.attempts.contains(lane->first))
          continue;
        if (request.blamed || request.virtual_worker || known.contains(request.pipeline) ||
            !can_run(lane, request.pipeline) || !dispatch_.can_start(executor, request.pipeline))
          continue;
        const Choice choice = choice_of(lane, request);
        if (is_measured) request.probe = lane->first;
        return start(*id, request, choice, is_measured ? AttemptKind::kProbe : AttemptKind::kFirst);
      }
    }
  }
}

void Assigner::start(RequestId id, Dispatch::Request& request, const Choice& choice, AttemptKind kind) {
  Lane& lane = choice.lane->second;
  const Expected& expected = choice.expected;
  places(lane, request.pipeline).take(expected.seconds, expected.threads);
  Dispatch::Attempt attempt{
      .request = id, .pipeline = request.pipeline, .samples = request.samples, .threads = expected.threads};
  attempt.is_measuring = choice.lane->first != kLocalExecutor && !is_measured(*lane.executor, request.pipeline);
  if (expected.measured) {
    attempt.expected_seconds = expected.seconds;
    attempt.late_at = choice.finish + duration(expected.seconds * (expected.late_factor - 1)) + kLateSlack;
  }
  lane.executor->attempts.push_back(attempt);
  mark_started(*lane.executor);
  lane.executor->skills.try_emplace(request.pipeline);
  lane.finishes.push_back(choice.finish);
  free_executors_ -= !dispatch_.has_room(*lane.executor);
  request.attempts.insert(choice.lane->first);
  Dispatch::Client& client = dispatch_.clients_.at(request.client);
  if (client.pending.erase(id) > 0) client.assigned.insert(id);
  started_.push_back({id, choice.lane->first, kind});
}

std::optional<Assigner::Choice> Assigner::first_to_finish(const Dispatch::Request& request, bool free_only) {
  std::optional<Choice> best;
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {  // local has the smallest id: it wins ties
    if ((free_only && !dispatch_.can_start(*lane->second.executor, request.pipeline)) || !may_run(lane, request))
      continue;
    const Choice choice = choice_of(lane, request);
    if (!best || choice.finish < best->finish) best = choice;
  }
  return best;
}

bool Assigner::must_wait(Queue& queue, const Dispatch::Request& request) {
  return request.virtual_worker &&
         !queue.virtual_workers.emplace(request.stream, request.virtual_worker->number).second;
}

bool Assigner::can_run(Lanes::const_iterator lane, PipelineNumber pipeline) {
  const Dispatch::Executor& executor = *lane->second.executor;
  if (executor.draining || executor.credits == 0) return false;
  if (lane->first == kLocalExecutor) return true;
  const auto skill = executor.skills.find(pipeline);
  return skill != executor.skills.end() && skill->second.allowed && !skill->second.excluded;
}

bool Assigner::has_its_share(const Dispatch::Client& client, PipelineNumber pipeline) const {
  if (client.assigned.size() < client.share || dispatch_.waits_.contains(pipeline)) return false;
  const auto computing = std::count_if(client.assigned.begin(), client.assigned.end(), [&](RequestId id) {
    return !dispatch_.waits_.contains(dispatch_.requests_.at(id).pipeline);
  });
  return static_cast<std::size_t>(computing) >= client.share;
}

bool Assigner::is_measured(const Dispatch::Executor& executor, PipelineNumber pipeline) const {
  const auto skill = executor.skills.find(pipeline);
  return skill != executor.skills.end() && skill->second.time.is_known(now_);
}

bool Assigner::may_run(Lanes::const_iterator lane, const Dispatch::Request& request) const {
  if (request.attempts.contains(lane->first) || !can_run(lane, request.pipeline)) return false;
  if (lane->second.executor->is_loading(request.pipeline)) return false;
  if (lane->first == kLocalExecutor) return true;
  return !request.blamed && is_measured(*lane->second.executor, request.pipeline);
}

Assigner::Expected Assigner::expected(Lanes::const_iterator lane, const Dispatch::Request& request) {
  const Dispatch::Executor& executor = *lane->second.executor;
  const std::size_t most = dispatch_.places(executor, request.pipeline, executor.threads).value_or(executor.threads);
  const std::size_t threads = lane->first == kLocalExecutor ? std::min(most, request.threads_max) : 1;
  const double samples = static_cast<double>(request.samples) / static_cast<double>(threads);  // of each thread
  if (is_measured(executor, request.pipeline)) {
    const ServiceTime& time = executor.skills.at(request.pipeline).time;
    return {samples * time.seconds(), threads, time.late_factor(), true};
  }
  const double fastest = fastest_sample_seconds(request.pipeline);
  return fastest > 0 ? Expected{samples * fastest, threads, kUnknownLateFactor, true}
                     : Expected{.seconds = kUnmeasuredSeconds, .threads = threads};
}

double Assigner::fastest_sample_seconds(PipelineNumber pipeline) {
  const auto [cached, is_new] = fastest_.try_emplace(pipeline, 0);
  if (!is_new) return cached->second;
  double known = 0, old = 0;
  for (const auto& [id, executor] : dispatch_.executors_) {
    const auto skill = executor.skills.find(pipeline);
    if (skill == executor.skills.end() || !skill->second.time.was_observed()) continue;
    double& fastest = skill->second.time.is_known(now_) ? known : old;
    const double seconds = skill->second.time.seconds();
    fastest = fastest == 0 ? seconds : std::min(fastest, seconds);
  }
  return cached->second = known > 0 ? known : old;
}

TimePoint Assigner::due(const Dispatch::Request& request) const {
  const Dispatch::Stream& stream = dispatch_.clients_.at(request.client).streams.at(request.stream);
  if (stream.seconds_per_batch <= 0 || request.place < stream.consumed) return TimePoint::min();
  return stream.paced_at + duration(static_cast<double>(request.place - stream.consumed) * stream.seconds_per_batch);
}

std::vector<Assignment> Dispatch::assign(TimePoint now) { return Assigner(*this, now).run(); }

}  // namespace sluice::feeder
