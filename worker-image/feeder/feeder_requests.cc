// The feeder's other half: requests on their way to executors and back.
#include <algorithm>
#include <cmath>

#include "src/base/logging.h"
#include "src/transport/worker_forms.h"
#include "worker-image/feeder/feeder.h"
#include "worker-image/feeder/window.h"

namespace sluice::feeder {

using executor::Batch;
using executor::BatchFailure;
using transport::ErrorMessage;

// ---- requests ----

void Feeder::pump() {
  if (ending_) return;
  for (const Assignment& assignment : dispatch_.assign(clock_.now())) start(assignment);
  metrics_.set_outstanding(dispatch_.outstanding());
}

void Feeder::watch_lateness(const std::stop_token& stop) {
  while (clock_.sleep_for(kLookInterval, stop)) {
    const Locked lock(*this);
    if (dispatch_.outstanding() > 0) pump();
  }
}

void Feeder::load_changed(PipelineNumber pipeline, bool is_loaded) {
  const Locked lock(*this);
  dispatch_.set_loaded(kLocalExecutor, pipeline, is_loaded, clock_.now());
  dispatch_.set_loading(kLocalExecutor, local_->loading());
  pump();
}

void Feeder::waits_changed(const executor::Pipeline& pipeline) {
  const Locked lock(*this);
  follow_waits(pipeline);
  pump();
}

void Feeder::follow_waits(const executor::Pipeline& pipeline) {
  const double load = pipeline.waits->load();
  // The ranks that share this feeder would have as many workers each. Of Python pipelines each has its own.
  const std::size_t sharing = pipeline.owner == 0 ? std::max<std::size_t>(1, greeted_clients()) : 1;
  const std::size_t workers = sharing * pipeline.num_workers;
  pipeline.waits->set_jobs_max(workers);
  if (dispatch_.set_waits(pipeline.number, load, workers))
    log_info("feeder", load < 1 ? "a pipeline's batches wait: more of them are made at once" : "a pipeline computes",
             {{"pipeline", pipeline.fingerprint.substr(0, 12)}, {"computes_percent", std::lround(100 * load)}});
  send_windows();
}

void Feeder::set_local_capacity() {
  const std::size_t threads = local_->threads();
  dispatch_.set_capacity(kLocalExecutor, threads, threads, local_->requests_max() - threads);
}

void Feeder::start(const Assignment& assignment) {
  const ActiveRequest& active = active_.at(assignment.request);
  if (assignment.kind == AttemptKind::kHedge) metrics_.count_hedged();
  if (assignment.executor != kLocalExecutor)
    return remote_->execute(assignment.executor, assignment.request, active.request);
  const RequestId id = assignment.request;
  const bool taken = local_->run(active.request, active.cancelled, active.ahead, [this, id](BatchOutcome outcome) {
    finished(kLocalExecutor, id, std::move(outcome));
  });
  // Dispatch never exceeds the credits, so this is a bug: the client gets an error rather than silence.
  if (!taken)
    finished_failure(kLocalExecutor, id, executor::to_failure(internal_error("the local executor's queue is full")));
}

void Feeder::cancel(const std::vector<Assignment>& attempts, const std::function<bool(const ActiveRequest&)>& which) {
  for (const Assignment& attempt : attempts) {
    if (attempt.executor != kLocalExecutor) freed_.push_back(remote_->cancel(attempt.executor, attempt.request));
  }
  std::erase_if(active_, [&](const auto& entry) {
    if (!which(entry.second)) return false;
    entry.second.cancelled->store(true);
    return true;
  });
}

void Feeder::finished(ExecutorId executor, RequestId id, BatchOutcome outcome) {
  const Locked lock(*this);
  if (auto* batch = std::get_if<Batch>(&outcome)) {
    finished_batch(executor, id, *batch);
  } else {
    finished_failure(executor, id, std::get<BatchFailure>(outcome));
  }
  pump();
}

void Feeder::finished_batch(ExecutorId executor, RequestId id, Batch& batch) {
  const Answer answer = dispatch_.answer(executor, id, clock_.now());
  if (answer.kind == AnswerKind::kDuplicate) metrics_.count_duplicate();
  if (answer.kind != AnswerKind::kFirst) return;
  const ActiveRequest& active = active_.at(id);
  // What a batch waits for here, its executor has told already.
  if (const auto& pipeline = *active.request->pipeline;
      executor != kLocalExecutor && batch.blocked_seconds &&
      pipeline.waits->observe(batch.busy_seconds, *batch.blocked_seconds))
    follow_waits(pipeline);
  const std::string_view placement = executor == kLocalExecutor ? "local" : "remote";
  deliver(clients_.at(active.client), active, std::move(batch), placement);
  end(id, answer.overtaken);
}

void Feeder::finished_failure(ExecutorId executor, RequestId id, const BatchFailure& failure) {
  // The trainer's own pod may make a batch that a remote worker cannot: it sees the data as the user does.
  const bool is_remote = executor != kLocalExecutor;
  const FailureAnswer answer = dispatch_.fail(executor, id, is_remote);
  if (answer.kind == FailureKind::kRetried) {
    metrics_.count_reissued(1);
    log_warning("feeder", "a remote worker failed a batch; tried again locally",
                {{"address", address_of(executor)}, {"reason", failure.failure.message}});
  } else if (answer.kind == FailureKind::kFinal) {
    const ActiveRequest& active = active_.at(id);
    fail(clients_.at(active.client), active, failure);
    end(id, answer.overtaken);
  }
}

void Feeder::end(RequestId id, const std::vector<ExecutorId>& overtaken) {
  const auto active = active_.find(id);
  for (const ExecutorId executor : overtaken) {
    if (executor == kLocalExecutor) {
      active->second.cancelled->store(true);
    } else {
      freed_.push_back(remote_->cancel(executor, id));
    }
  }
  active_.erase(active);
}

void Feeder::deliver(ClientSession& client, const ActiveRequest& active, Batch batch, std::string_view placement) {
  transport::BatchMessage message{
      .stream = active.stream,
      .seq = active.request->seq,
      .slot = batch.slot.id(),
      .copy = false,
      .tensors = std::move(batch.tensors),
      .seconds = batch.busy_seconds,
      .placement = placement,
      .ops = std::move(batch.ops),
      .blocked_seconds = batch.blocked_seconds,
      .holds_files = batch.holds_files,
      .kept = std::move(batch.kept),
      .from_memory = batch.from_memory,
  };
  for (auto& tensor : message.tensors) tensor.offset += batch.slot.offset();
  note_batch_bytes(client, batch.slot.bytes());
  const auto& arena = options_.local.arena;
  message.copy = !arena->try_lend(batch.slot, keep_bytes(arena->bytes(), largest_batch_bytes_));
  client.slots.emplace(batch.slot.id(), std::move(batch.slot));
  client.connection->send(to_json(message), batch.structure);
  dispatch_.set_held(client.connection->id(), client.slots.size());
  metrics_.count_batch(placement, std::chrono::duration<double>(clock_.wall_now().time_since_epoch()).count());
}

void Feeder::fail(ClientSession& client, const ActiveRequest& active, const BatchFailure& failure) {
  ErrorMessage message;
  message.stream = active.stream;
  message.seq = active.request->seq;
  message.failure = failure.failure;
  client.connection->send(to_json(message), failure.exception);
}

void Feeder::note_batch_bytes(ClientSession& client, std::size_t bytes) {
  bytes = std::min(bytes, options_.local.arena->bytes());
  largest_batch_bytes_ = std::max(largest_batch_bytes_, bytes);
  if (bytes <= client.batch_bytes) return;
  client.batch_bytes = bytes;
  send_windows();
}

void Feeder::send_windows() {
  const std::size_t clients = greeted_clients();
  for (auto& [id, client] : clients_) {
    if (!client.greeted) continue;
    const WindowInputs inputs{
        .credits = dispatch_.credits(),
        .clients = clients,
        .prefetch_batches = client.prefetch_batches,
        .arena_bytes = options_.local.arena->bytes(),
        .batch_bytes = client.batch_bytes > 0 ? client.batch_bytes : client.batch_bytes_hint,
    };
    if (const std::string line = client.arena_fit.told_of(inputs); !line.empty())
      log_info("feeder", line, {{"client", id}, {"rank", client.rank}});
    const std::size_t window = window_batches(inputs);
    if (std::exchange(client.window, window) != window) client.connection->send(transport::window_json(window));
  }
}

// ---- executors ----

std::string Feeder::address_of(ExecutorId executor) const {
  const auto worker = workers_.find(executor);
  return worker == workers_.end() ? "unknown" : worker->second;
}

void Feeder::tick(std::size_t local_threads) {
  options_.local.arena->sweep_waiters();
  local_->tick();
  const Locked lock(*this);
  quota_threads_ = local_threads;
  follow_threads();
  set_local_capacity();
  metrics_.set_outstanding(dispatch_.outstanding());
  metrics_.set_arena_free(options_.local.arena->free_bytes());
  metrics_.set_cpu_seconds(process_cpu_seconds());
}

std::size_t Feeder::clients() {
  const Locked lock(*this);
  return greeted_clients();
}

std::size_t Feeder::greeted_clients() const {
  return static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [](const auto& entry) { return entry.second.greeted; }));
}

std::size_t Feeder::threads_wanted() const {
  std::size_t wanted = 0;
  if (options_.threads_by_loaders) {
    for (const auto& [id, client] : clients_) {
      wanted += threads_wanted(client);
    }
  }
  return wanted == 0 ? quota_threads_ : std::min(wanted, quota_threads_ * options_.ranks);
}

std::size_t Feeder::threads_wanted(const ClientSession& client) const {
  std::size_t loaders = 0;
  for (const auto& [number, known] : client.pipelines)
    loaders = std::max<std::size_t>(loaders, known.pipeline->num_workers);
  return std::min(quota_threads_, loaders);
}

void Feeder::follow_threads() {
  if (options_.ranks > 1 && options_.threads_by_loaders) {
    for (const auto& [id, client] : clients_) dispatch_.set_share(id, std::max<std::size_t>(1, threads_wanted(client)));
  }
  const std::size_t threads = threads_wanted();
  if (threads == local_->threads()) return;
  log_info("feeder", "number of threads changed", {{"threads", threads}});
  local_->set_threads(threads);
  set_local_capacity();
  pump();
  send_windows();
}

void Feeder::executor_joined(ExecutorId executor, const std::string& address, std::size_t threads, std::size_t credits,
                             std::size_t waiting_max) {
  const Locked lock(*this);
  dispatch_.add_executor(executor, threads, credits, waiting_max);
  workers_[executor] = address;
  metrics_.set_remote_workers(workers_.size());
  log_info("feeder", "worker joined", {{"address", address}, {"threads", threads}, {"credits", credits}});
  for (const auto& [id, client] : clients_) {
    for (const auto& [number, stream] : client.streams) {
      if (stream.virtual_workers == nullptr || stream.virtual_workers->is_portable)
        remote_->load(executor, stream.pipeline);
    }
  }
  send_windows();
}

void Feeder::executor_refused(const std::string& address, std::uint32_t protocol) {
  const Locked lock(*this);
  metrics_.count_refused_worker();
  if (std::exchange(refused_protocol_, protocol) == protocol) return;  // said once, not for each worker and attempt
  log_warning("feeder", "data workers of another version are not used; batches are made beside the trainer",
              {{"address", address}, {"their_protocol", protocol}, {"our_protocol", transport::kProtocolVersion}});
}

void Feeder::executor_draining(ExecutorId executor) {
  const Locked lock(*this);
  log_info("feeder", "worker drains", {{"address", address_of(executor)}});
  dispatch_.drain(executor);
  send_windows();
}

void Feeder::executor_lost(ExecutorId executor, const std::string& reason) {
  const Locked lock(*this);
  const std::size_t reissued = dispatch_.remove_executor(executor);
  log_info("feeder", "worker gone", {{"address", address_of(executor)}, {"reason", reason}, {"reissued", reissued}});
  workers_.erase(executor);
  metrics_.count_reissued(reissued);
  metrics_.set_remote_workers(workers_.size());
  pump();
  send_windows();
}

void Feeder::pipeline_ready(ExecutorId executor, PipelineNumber pipeline) {
  const Locked lock(*this);
  dispatch_.allow(executor, pipeline);
  pump();
}

void Feeder::pipeline_refused(ExecutorId executor, PipelineNumber pipeline, const std::string& reason) {
  const Locked lock(*this);
  const std::size_t reissued = dispatch_.exclude(executor, pipeline);
  metrics_.count_reissued(reissued);
  log_warning("feeder", "worker cannot run a pipeline",
              {{"address", address_of(executor)}, {"reason", reason}, {"reissued", reissued}});
  pump();
}

}  // namespace sluice::feeder
