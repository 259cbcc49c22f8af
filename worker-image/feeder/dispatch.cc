#include "worker-image/feeder/dispatch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::feeder {
namespace {

constexpr double kSecondsPerBatchMax = 3600;

}  // namespace

void Dispatch::add_client(ClientId client) { clients_.try_emplace(client); }

std::vector<Assignment> Dispatch::remove_client(ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return {};
  std::vector<RequestId> requests(found->second.pending.begin(), found->second.pending.end());
  requests.insert(requests.end(), found->second.assigned.begin(), found->second.assigned.end());
  auto attempts = cancel(requests);
  clients_.erase(client);
  return attempts;
}

bool Dispatch::submit(ClientId client, StreamId stream, PipelineNumber pipeline, RequestId request, std::size_t samples,
                      std::optional<VirtualWorker> virtual_worker, std::size_t threads_max) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  if (found->second.pending.size() + found->second.assigned.size() >= kPendingPerClientMax) return false;
  // Batches that the client made itself were consumed, and never submitted.
  Stream& order = found->second.streams[stream];
  const std::uint64_t place = std::max(order.submitted, order.consumed);
  order.submitted = place + 1;
  requests_.emplace(request, Request{client,
                                     stream,
                                     pipeline,
                                     std::max<std::size_t>(1, samples),
                                     place,
                                     {},
                                     {},
                                     {},
                                     virtual_worker,
                                     std::max<std::size_t>(1, threads_max)});
  found->second.pending.insert(request);
  return true;
}

void Dispatch::set_pace(ClientId client, StreamId stream, std::uint64_t consumed, double seconds_per_batch,
                        TimePoint now) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  const auto paced = found->second.streams.find(stream);
  if (paced == found->second.streams.end()) return;
  paced->second.consumed = consumed;
  paced->second.seconds_per_batch = std::clamp(seconds_per_batch, 0.0, kSecondsPerBatchMax);
  paced->second.paced_at = now;
}

std::vector<Assignment> Dispatch::cancel_stream(ClientId client, StreamId stream) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return {};
  std::vector<RequestId> requests;
  for (const auto* set : {&found->second.pending, &found->second.assigned}) {
    for (const RequestId request : *set) {
      if (requests_.at(request).stream == stream) requests.push_back(request);
    }
  }
  found->second.streams.erase(stream);
  return cancel(requests);
}

std::vector<Assignment> Dispatch::cancel(const std::vector<RequestId>& requests) {
  std::vector<Assignment> attempts;
  for (const RequestId id : requests) {
    const auto request = requests_.find(id);
    for (const ExecutorId executor : request->second.attempts) attempts.push_back({id, executor});
    forget(request);
  }
  return attempts;
}

void Dispatch::forget(std::map<RequestId, Request>::iterator request) {
  Client& client = clients_.at(request->second.client);
  client.pending.erase(request->first);
  client.assigned.erase(request->first);
  requests_.erase(request);
}

void Dispatch::add_executor(ExecutorId executor, std::size_t threads, std::size_t credits, std::size_t waiting_max) {
  executors_[executor] =
      Executor{.threads = std::max<std::size_t>(1, threads), .credits = credits, .waiting_max = waiting_max};
}

void Dispatch::set_capacity(ExecutorId executor, std::size_t threads, std::size_t credits, std::size_t waiting_max) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return;
  found->second.threads = std::max<std::size_t>(1, threads);
  found->second.credits = credits;
  found->second.waiting_max = waiting_max;
}

void Dispatch::set_loading(ExecutorId executor, std::size_t requests) {
  if (const auto found = executors_.find(executor); found != executors_.end()) found->second.loading = requests;
}

void Dispatch::set_loaded(ExecutorId executor, PipelineNumber pipeline, bool is_loaded, TimePoint now) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return;
  const bool was_loaded = std::exchange(found->second.skills[pipeline].is_loaded, is_loaded);
  if (was_loaded || !is_loaded) return;
  for (Attempt& attempt : found->second.attempts)
    if (attempt.pipeline == pipeline && attempt.started) attempt.started = now;
}

bool Dispatch::set_waits(PipelineNumber pipeline, double load, std::size_t requests_max) {
  if (load >= 1) return waits_.erase(pipeline) > 0;
  return waits_.insert_or_assign(pipeline, Waits{load, requests_max}).second;
}

std::optional<std::size_t> Dispatch::places(const Executor& executor, PipelineNumber pipeline,
                                            std::size_t threads) const {
  const auto waits = waits_.find(pipeline);
  if (waits == waits_.end()) return std::nullopt;
  const auto filling = static_cast<std::size_t>(std::ceil(static_cast<double>(threads) / waits->second.load));
  const std::size_t most = std::max(executor.credits, waits->second.requests_max);
  return std::min({filling, most, executor.credits + executor.waiting_max});
}

std::size_t Dispatch::held_credits(const Executor& executor) const {
  if (waits_.empty()) return executor.attempts.size();
  return static_cast<std::size_t>(std::count_if(executor.attempts.begin(), executor.attempts.end(),
                                                [&](const Attempt& a) { return !waits_.contains(a.pipeline); }));
}

bool Dispatch::has_room(const Executor& executor) const {
  if (executor.draining) return false;
  if (held_credits(executor) < executor.credits_now()) return true;
  return !waits_.empty() && executor.attempts.size() < executor.credits_now() + executor.waiting_max;
}

bool Dispatch::can_start(const Executor& executor, PipelineNumber pipeline) const {
  if (executor.draining) return false;
  if (const auto own = places(executor, pipeline, executor.credits))
    return executor.attempts.size() < executor.credits_now() + executor.waiting_max &&
           executor.held_of(pipeline) < *own;
  if (held_credits(executor) >= executor.credits_now()) return false;
  return executor.loading == 0 || executor.held_of(pipeline) < executor.credits;
}

std::size_t Dispatch::Executor::held_of(PipelineNumber pipeline) const {
  return static_cast<std::size_t>(
      std::count_if(attempts.begin(), attempts.end(), [&](const Attempt& a) { return a.pipeline == pipeline; }));
}

bool Dispatch::Executor::is_loading(PipelineNumber pipeline) const {
  const auto skill = skills.find(pipeline);
  return skill != skills.end() && !skill->second.is_loaded && held_of(pipeline) > 0;
}

void Dispatch::drain(ExecutorId executor) {
  if (const auto found = executors_.find(executor); found != executors_.end()) found->second.draining = true;
}

std::size_t Dispatch::remove_executor(ExecutorId executor) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return 0;
  const std::vector<Attempt> attempts = std::move(found->second.attempts);
  executors_.erase(found);
  std::size_t reissued = 0;
  for (const Attempt& attempt : attempts) reissued += give_up(executor, attempt.request);
  return reissued;
}

bool Dispatch::give_up(ExecutorId executor, RequestId id) {
  const auto request = requests_.find(id);
  if (request == requests_.end()) return false;
  return drop_attempt(executor, id, request->second);
}

bool Dispatch::drop_attempt(ExecutorId executor, RequestId id, Request& request) {
  request.attempts.erase(executor);
  // A probe that is left alone is what the request depends on now.
  if (request.probe == executor || request.attempts.size() == 1) request.probe.reset();
  if (!request.attempts.empty()) return false;
  make_pending(id);
  return true;
}

void Dispatch::allow(ExecutorId executor, PipelineNumber pipeline) {
  if (const auto found = executors_.find(executor); found != executors_.end())
    found->second.skills[pipeline].allowed = true;
}

std::size_t Dispatch::exclude(ExecutorId executor, PipelineNumber pipeline) {
  const auto found = executors_.find(executor);
  if (found == executors_.end() || executor == kLocalExecutor) return 0;
  found->second.skills[pipeline].excluded = true;
  std::size_t reissued = 0;
  // It said that it will not run them: the credits are free.
  std::erase_if(found->second.attempts, [&](const Attempt& attempt) {
    if (attempt.pipeline != pipeline || !requests_.contains(attempt.request)) return false;
    reissued += give_up(executor, attempt.request);
    return true;
  });
  return reissued;
}

void Dispatch::forget_pipeline(PipelineNumber pipeline) {
  for (auto& [id, executor] : executors_) executor.skills.erase(pipeline);
  waits_.erase(pipeline);
}

void Dispatch::make_pending(RequestId id) {
  Client& client = clients_.at(requests_.at(id).client);
  client.assigned.erase(id);
  client.pending.insert(id);
}

std::optional<Dispatch::Attempt> Dispatch::release_attempt(ExecutorId executor, RequestId request) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return std::nullopt;
  auto& attempts = found->second.attempts;
  const auto attempt = std::find_if(attempts.begin(), attempts.end(),
                                    [&](const Attempt& candidate) { return candidate.request == request; });
  if (attempt == attempts.end()) return std::nullopt;
  const Attempt released = *attempt;
  attempts.erase(attempt);
  return released;
}

void Dispatch::observe(ExecutorId executor, const Attempt& attempt, bool finished, TimePoint now) {
  auto& skills = executors_.at(executor).skills;
  const auto skill = skills.find(attempt.pipeline);
  if (skill == skills.end()) return;  // forgotten meanwhile
  if (finished) skill->second.is_loaded = true;
  if (!attempt.started) return;
  const double seconds = std::chrono::duration<double>(now - *attempt.started).count();
  const double per_sample = seconds * static_cast<double>(attempt.threads) / static_cast<double>(attempt.samples);
  if (finished) {
    skill->second.time.observe(per_sample, now);
  } else {
    skill->second.time.observe_unfinished(per_sample, now);
  }
}

std::vector<ExecutorId> Dispatch::overtake(RequestId id, const Request& answered, ExecutorId winner) {
  std::vector<ExecutorId> overtaken;
  for (const ExecutorId executor : answered.attempts) {
    if (executor == winner) continue;
    for (Attempt& attempt : executors_.at(executor).attempts) {
      if (attempt.request != id) continue;
      attempt.overtaken = true;
      if (!attempt.is_measuring) overtaken.push_back(executor);
    }
  }
  return overtaken;
}

Answer Dispatch::answer(ExecutorId executor, RequestId id, TimePoint now) {
  const auto released = release_attempt(executor, id);
  if (released) observe(executor, *released, true, now);
  const auto request = requests_.find(id);
  if (request == requests_.end()) {
    const bool cancelled = released && !released->overtaken;
    return {cancelled ? AnswerKind::kUnwanted : AnswerKind::kDuplicate, {}};
  }
  // An executor that failed a batch that the trainer's own pod could make should not get this pipeline again.
  if (executor == kLocalExecutor && request->second.blamed) {
    if (const auto blamed = executors_.find(*request->second.blamed); blamed != executors_.end()) {
      blamed->second.skills[request->second.pipeline].excluded = true;
    }
  }
  // An answer of an executor declared lost is as good as any: the request may even be pending again.
  // Attempts that are still running elsewhere keep their credits until they answer.
  Answer answer{AnswerKind::kFirst, overtake(id, request->second, executor)};
  for (const ExecutorId slower : answer.overtaken) {
    for (const Attempt& attempt : executors_.at(slower).attempts) {
      if (attempt.request == id && now > attempt.late_at) observe(slower, attempt, false, now);
    }
  }
  forget(request);
  return answer;
}

FailureAnswer Dispatch::fail(ExecutorId executor, RequestId id, bool retry_elsewhere) {
  const bool held = release_attempt(executor, id).has_value();
  const auto request = requests_.find(id);
  if (request == requests_.end() || !held) return {FailureKind::kUnwanted, {}};
  if (executor == kLocalExecutor || !retry_elsewhere) {
    FailureAnswer final{FailureKind::kFinal, overtake(id, request->second, executor)};
    forget(request);
    return final;
  }
  request->second.blamed = executor;
  const bool is_pending = drop_attempt(executor, id, request->second);
  return {is_pending ? FailureKind::kRetried : FailureKind::kUnwanted, {}};
}

void Dispatch::set_held(ClientId client, std::size_t batches) {
  if (const auto found = clients_.find(client); found != clients_.end()) found->second.held = batches;
}

void Dispatch::set_share(ClientId client, std::size_t requests) {
  if (const auto found = clients_.find(client); found != clients_.end()) found->second.share = requests;
}

std::size_t Dispatch::credits() const {
  std::size_t total = 0;
  for (const auto& [id, executor] : executors_) {
    if (executor.draining) continue;
    std::size_t most = executor.credits;
    for (const auto& [pipeline, waits] : waits_)
      most = std::max(most, places(executor, pipeline, executor.credits).value_or(0));
    total += most;
  }
  return total;
}

std::size_t Dispatch::outstanding() const {
  std::size_t total = 0;
  for (const auto& [id, executor] : executors_) total += executor.attempts.size();
  return total;
}

std::size_t Dispatch::pending() const {
  std::size_t total = 0;
  for (const auto& [id, client] : clients_) total += client.pending.size();
  return total;
}

std::size_t Dispatch::held_by(ExecutorId executor) const {
  const auto found = executors_.find(executor);
  return found == executors_.end() ? 0 : found->second.attempts.size();
}

}  // namespace sluice::feeder
