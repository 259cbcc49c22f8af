#include "worker-image/feeder/dispatch.h"

#include <algorithm>

namespace sluice::feeder {

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

bool Dispatch::submit(ClientId client, StreamId stream, PipelineNumber pipeline, RequestId request) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return false;
  if (found->second.pending.size() + found->second.assigned.size() >= kPendingPerClientMax) return false;
  requests_.emplace(request, Request{client, stream, pipeline, {}, std::nullopt});
  found->second.pending.insert(request);
  return true;
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

void Dispatch::add_executor(ExecutorId executor, std::size_t threads, std::size_t credits) {
  executors_[executor] = Executor{std::max<std::size_t>(1, threads), credits, false, {}, {}, {}};
}

void Dispatch::set_capacity(ExecutorId executor, std::size_t threads, std::size_t credits) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return;
  found->second.threads = std::max<std::size_t>(1, threads);
  found->second.credits = credits;
}

void Dispatch::drain(ExecutorId executor) {
  if (const auto found = executors_.find(executor); found != executors_.end()) found->second.draining = true;
}

std::size_t Dispatch::remove_executor(ExecutorId executor) {
  const auto found = executors_.find(executor);
  if (found == executors_.end()) return 0;
  const std::set<RequestId> attempts = std::move(found->second.attempts);
  executors_.erase(found);
  std::size_t reissued = 0;
  for (const RequestId id : attempts) {
    const auto request = requests_.find(id);
    if (request == requests_.end()) continue;
    request->second.attempts.erase(executor);
    if (!request->second.attempts.empty()) continue;
    make_pending(id);
    ++reissued;
  }
  return reissued;
}

void Dispatch::allow(ExecutorId executor, PipelineNumber pipeline) {
  if (const auto found = executors_.find(executor); found != executors_.end()) found->second.allowed.insert(pipeline);
}

std::size_t Dispatch::exclude(ExecutorId executor, PipelineNumber pipeline) {
  const auto found = executors_.find(executor);
  if (found == executors_.end() || executor == kLocalExecutor) return 0;
  found->second.excluded.insert(pipeline);
  std::size_t reissued = 0;
  const std::set<RequestId> attempts = found->second.attempts;
  for (const RequestId id : attempts) {
    const auto request = requests_.find(id);
    if (request == requests_.end() || request->second.pipeline != pipeline) continue;
    found->second.attempts.erase(id);  // it said that it will not run them: the credit is free
    request->second.attempts.erase(executor);
    if (!request->second.attempts.empty()) continue;
    make_pending(id);
    ++reissued;
  }
  return reissued;
}

void Dispatch::make_pending(RequestId id) {
  Client& client = clients_.at(requests_.at(id).client);
  client.assigned.erase(id);
  client.pending.insert(id);
}

bool Dispatch::may_run(ExecutorId id, const Executor& executor, const Request& request) {
  if (executor.draining || executor.attempts.size() >= executor.credits) return false;
  if (id == kLocalExecutor) return true;
  return !request.blamed && executor.allowed.contains(request.pipeline) &&
         !executor.excluded.contains(request.pipeline);
}

std::optional<ExecutorId> Dispatch::choose_executor(const Request& request) const {
  std::optional<ExecutorId> best;
  double best_load = 0;
  for (const auto& [id, executor] : executors_) {  // local has the smallest id: it wins ties
    if (!may_run(id, executor, request)) continue;
    const double load = static_cast<double>(executor.attempts.size()) / static_cast<double>(executor.threads);
    if (best && load >= best_load) continue;
    best = id;
    best_load = load;
  }
  return best;
}

std::optional<Assignment> Dispatch::assign_one() {
  std::vector<std::pair<std::size_t, ClientId>> emptiest_first;
  for (const auto& [id, client] : clients_) {
    if (!client.pending.empty()) emptiest_first.emplace_back(client.held + client.assigned.size(), id);
  }
  std::sort(emptiest_first.begin(), emptiest_first.end());
  for (const auto& [fill, client_id] : emptiest_first) {
    Client& client = clients_.at(client_id);
    for (const RequestId id : client.pending) {
      Request& request = requests_.at(id);
      const auto executor = choose_executor(request);
      if (!executor) continue;
      request.attempts.insert(*executor);
      executors_.at(*executor).attempts.insert(id);
      client.pending.erase(id);
      client.assigned.insert(id);
      return Assignment{id, *executor};
    }
  }
  return std::nullopt;
}

std::vector<Assignment> Dispatch::assign() {
  std::vector<Assignment> assignments;
  const bool any_free = std::any_of(executors_.begin(), executors_.end(), [](const auto& entry) {
    return !entry.second.draining && entry.second.attempts.size() < entry.second.credits;
  });
  if (!any_free) return assignments;
  while (const auto assignment = assign_one()) assignments.push_back(*assignment);
  return assignments;
}

bool Dispatch::release_attempt(ExecutorId executor, RequestId request) {
  const auto found = executors_.find(executor);
  return found != executors_.end() && found->second.attempts.erase(request) > 0;
}

AnswerKind Dispatch::answer(ExecutorId executor, RequestId id) {
  const bool held = release_attempt(executor, id);
  const auto request = requests_.find(id);
  if (request == requests_.end()) return held ? AnswerKind::kUnwanted : AnswerKind::kDuplicate;
  // The executor that failed what the trainer's own pod could do should not get this pipeline again.
  if (executor == kLocalExecutor && request->second.blamed) {
    if (const auto blamed = executors_.find(*request->second.blamed); blamed != executors_.end()) {
      blamed->second.excluded.insert(request->second.pipeline);
    }
  }
  // An answer of an executor declared lost is as good as any: the request may even be pending again.
  // Attempts that are still running elsewhere keep their credits until they answer.
  forget(request);
  return AnswerKind::kFirst;
}

FailureKind Dispatch::fail(ExecutorId executor, RequestId id, bool retry_elsewhere) {
  const bool held = release_attempt(executor, id);
  const auto request = requests_.find(id);
  if (request == requests_.end() || !held) return FailureKind::kUnwanted;
  request->second.attempts.erase(executor);
  if (executor == kLocalExecutor || !retry_elsewhere) {
    forget(request);
    return FailureKind::kFinal;
  }
  request->second.blamed = executor;
  if (request->second.attempts.empty()) make_pending(id);
  return FailureKind::kRetried;
}

void Dispatch::set_held(ClientId client, std::size_t batches) {
  if (const auto found = clients_.find(client); found != clients_.end()) found->second.held = batches;
}

std::size_t Dispatch::credits() const {
  std::size_t total = 0;
  for (const auto& [id, executor] : executors_) total += executor.draining ? 0 : executor.credits;
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
