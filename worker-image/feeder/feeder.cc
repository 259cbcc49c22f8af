#include "worker-image/feeder/feeder.h"

#include <algorithm>

#include "src/base/logging.h"
#include "worker-image/feeder/window.h"

namespace sluice::feeder {
namespace {

using executor::Batch;
using executor::BatchFailure;
using executor::ExecutorKind;
using transport::ErrorMessage;

std::string number(std::uint64_t value) { return std::to_string(value); }

// Who sends what we cannot use is told the field; the stream and sequence number let the client find its request.
ErrorMessage error_reply(const Error& error) {
  ErrorMessage reply;
  reply.failure = executor::to_failure(error).failure;
  return reply;
}

ErrorMessage error_reply(const Error& error, const transport::ClientMessage& message) {
  ErrorMessage reply = error_reply(error);
  if (const auto* request = std::get_if<transport::RequestMessage>(&message)) {
    reply.stream = request->stream;
    reply.seq = request->seq;
  } else if (const auto* open = std::get_if<transport::OpenMessage>(&message)) {
    reply.stream = open->stream;
  }
  return reply;
}

}  // namespace

Feeder::Feeder(Options options, const Clock& clock, executor::ExecutorMetrics& executor_metrics, FeederMetrics& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      local_(std::make_unique<LocalExecutor>(options_.local, executor_metrics)) {
  dispatch_.add_executor(kLocalExecutor, local_->threads(), local_->threads());
}

Feeder::~Feeder() = default;

// ---- clients ----

void Feeder::connected(std::shared_ptr<Connection> connection) {
  std::lock_guard lock(mutex_);
  dispatch_.add_client(connection->id());
  clients_[connection->id()].connection = std::move(connection);
}

void Feeder::received(std::uint64_t id, transport::Frame frame) {
  auto parsed = transport::parse_client_message(frame.json);
  Slots freed;  // before the lock: freed after it
  std::unique_lock lock(mutex_);
  ClientSession& client = clients_.at(id);
  if (!parsed.ok()) return client.connection->send(to_json(error_reply(parsed.error())));
  if (!client.greeted && !std::holds_alternative<transport::HelloMessage>(*parsed)) {
    client.connection->send(to_json(error_reply(invalid_argument("frame.type: the first message must be hello"))));
    return client.connection->close_after_sending();
  }
  if (const auto* pipeline = std::get_if<transport::PipelineMessage>(&*parsed)) {
    lock.unlock();
    return receive_pipeline(id, *pipeline, std::move(frame.blob));
  }
  const auto result = std::visit(
      [&](auto& message) -> Result<void> {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, transport::PipelineMessage>) return {};
        else if constexpr (std::is_same_v<Message, transport::ReleaseMessage>) return handle(client, message, freed);
        else return handle(client, message);
      },
      *parsed);
  if (!result.ok()) client.connection->send(to_json(error_reply(result.error(), *parsed)));
}

void Feeder::broken(std::uint64_t id, const Error& error) {
  std::lock_guard lock(mutex_);
  log_warning("feeder", "client disconnected: " + error.message(), {{"client", id}});
  clients_.at(id).connection->send(to_json(error_reply(error)));
}

void Feeder::disconnected(std::uint64_t id) {
  std::map<std::uint64_t, transport::ArenaSlot> freed;
  std::lock_guard lock(mutex_);
  const auto client = clients_.find(id);
  cancel(dispatch_.remove_client(id), [&](const ActiveRequest& active) { return active.client == id; });
  freed = std::move(client->second.slots);
  if (client->second.greeted) log_info("feeder", "client gone", {{"client", id}, {"rank", client->second.rank}});
  clients_.erase(client);
  pump();
  send_windows();
}

Result<void> Feeder::handle(ClientSession& client, const transport::HelloMessage& message) {
  if (message.protocol != transport::kLocalProtocol) {
    return invalid_argument("hello.protocol: this feeder speaks version " + number(transport::kLocalProtocol));
  }
  if (client.greeted) return invalid_argument("hello: was said before");
  client.greeted = true;
  client.rank = message.rank;
  const auto& arena = *options_.local.arena;
  client.connection->send(transport::welcome_json(arena.bytes(), options_.session), "", arena.fd());
  log_info("feeder", "client connected", {{"client", client.connection->id()}, {"rank", message.rank}, {"pid", message.pid}});
  send_windows();
  return {};
}

Result<executor::PipelineHandle> Feeder::shared_pipeline(const transport::PipelineMessage& message, std::string blob) {
  const ExecutorKind kind = message.executor == "native" ? ExecutorKind::kNative : ExecutorKind::kPython;
  // The same pipeline of several ranks, or of every epoch's iterator, is parsed and sent to workers once.
  const std::string key = executor::pipeline_fingerprint(kind, blob) + " " + number(message.num_workers) + " " + message.python;
  PipelineNumber pipeline_number = 0;
  {
    std::lock_guard lock(mutex_);
    if (const auto known = pipelines_.find(key); known != pipelines_.end()) {
      if (auto pipeline = known->second.lock()) return pipeline;
    }
    pipeline_number = next_pipeline_++;
  }
  SLUICE_TRY(auto pipeline, executor::make_pipeline(pipeline_number, kind, std::move(blob), message.python, message.num_workers));
  std::lock_guard lock(mutex_);
  std::erase_if(pipelines_, [](const auto& entry) { return entry.second.expired(); });
  pipelines_[key] = pipeline;
  return pipeline;
}

void Feeder::receive_pipeline(ClientId id, const transport::PipelineMessage& message, std::string blob) {
  const auto pipeline = shared_pipeline(message, std::move(blob));
  std::lock_guard lock(mutex_);
  ClientSession& client = clients_.at(id);
  if (!pipeline.ok()) return client.connection->send(transport::not_ready_json(message.id, pipeline.error().message()));
  if (client.pipelines.size() >= kPipelinesPerClientMax) client.pipelines.erase(client.pipelines.begin());  // the oldest
  client.pipelines[message.id] = {*pipeline, message.prefetch_batches};
  client.prefetch_batches = std::max<std::size_t>(client.prefetch_batches, message.prefetch_batches);
  client.connection->send(transport::ready_json(message.id, (*pipeline)->fingerprint));
  note_batch_bytes(client, message.batch_bytes_hint);
  send_windows();
}

Result<void> Feeder::handle(ClientSession& client, const transport::OpenMessage& message) {
  const auto pipeline = client.pipelines.find(message.pipeline);
  if (pipeline == client.pipelines.end()) return invalid_argument("open.pipeline: " + number(message.pipeline) + " is unknown");
  if (client.streams.contains(message.stream)) return invalid_argument("open.stream: " + number(message.stream) + " is open already");
  if (client.streams.size() >= kStreamsPerClientMax) {
    return invalid_argument("open.stream: more than " + number(kStreamsPerClientMax) + " streams are open");
  }
  client.streams[message.stream] = {pipeline->second.pipeline, message.base_seed, message.epoch, {}};
  for (const auto& [executor, address] : workers_) remote_->load(executor, pipeline->second.pipeline);
  return {};
}

Result<void> Feeder::handle(ClientSession& client, transport::RequestMessage message) {
  const auto stream = client.streams.find(message.stream);
  if (stream == client.streams.end()) return invalid_argument("request.stream: " + number(message.stream) + " is not open");
  auto request = std::make_shared<executor::BatchRequest>();
  request->pipeline = stream->second.pipeline;
  request->stream = message.stream;
  request->seq = message.seq;
  request->base_seed = stream->second.base_seed;
  request->epoch = stream->second.epoch;
  request->position = message.position;
  request->indices = std::move(message.indices);
  if (request->pipeline->kind == ExecutorKind::kNative) {
    if (const auto checked = executor::check_indices(*request); !checked.ok()) return checked.error().with_context("request");
    note_batch_bytes(client, request->pipeline->native->batch_bytes(request->indices.size()));
  }
  const RequestId id = next_request_++;
  if (!dispatch_.submit(client.connection->id(), message.stream, request->pipeline->number, id)) {
    return Error(ErrorCode::kResourceExhausted, "request: far beyond the window of " + number(client.window) + " batches");
  }
  active_.emplace(id, ActiveRequest{client.connection->id(), std::move(request), std::make_shared<std::atomic<bool>>(false)});
  pump();
  return {};
}

Result<void> Feeder::handle(ClientSession& client, const transport::ReleaseMessage& message, Slots& freed) {
  Result<void> result;
  for (const std::uint64_t id : message.slots) {
    if (auto slot = client.slots.extract(id)) freed.push_back(std::move(slot.mapped()));
    else result = invalid_argument("release.slots: " + number(id) + " is not in this client's hands");
  }
  dispatch_.set_held(client.connection->id(), client.slots.size());
  return result;
}

Result<void> Feeder::handle(ClientSession& client, const transport::ProgressMessage& message) {
  const auto stream = client.streams.find(message.stream);
  if (stream == client.streams.end()) return invalid_argument("progress.stream: " + number(message.stream) + " is not open");
  metrics_.count_progress(client.rank, stream->second.progress, message);
  stream->second.progress = message;
  return {};
}

Result<void> Feeder::handle(ClientSession& client, const transport::CloseMessage& message) {
  if (client.streams.erase(message.stream) == 0) {
    return invalid_argument("close.stream: " + number(message.stream) + " is not open");
  }
  const ClientId id = client.connection->id();
  cancel(dispatch_.cancel_stream(id, message.stream), [&](const ActiveRequest& active) {
    return active.client == id && active.request->stream == message.stream;
  });
  pump();
  return {};
}

// ---- requests ----

void Feeder::pump() {
  for (const Assignment& assignment : dispatch_.assign()) start(assignment);
  metrics_.set_outstanding(dispatch_.outstanding());
}

void Feeder::start(const Assignment& assignment) {
  const ActiveRequest& active = active_.at(assignment.request);
  if (assignment.executor != kLocalExecutor) return remote_->execute(assignment.executor, assignment.request, active.request);
  const RequestId id = assignment.request;
  const bool taken = local_->run(active.request, active.cancelled, [this, id](BatchOutcome outcome) {
    finished(kLocalExecutor, id, std::move(outcome));
  });
  // Dispatch never exceeds the credits, so this is a bug: the client gets an error rather than silence.
  if (!taken && dispatch_.fail(kLocalExecutor, id, false) == FailureKind::kFinal) {
    fail(clients_.at(active.client), active, executor::to_failure(internal_error("the local executor's queue is full")));
    active_.erase(id);
  }
}

void Feeder::cancel(const std::vector<Assignment>& attempts, const std::function<bool(const ActiveRequest&)>& which) {
  for (const Assignment& attempt : attempts) {
    if (attempt.executor != kLocalExecutor) remote_->cancel(attempt.executor, attempt.request);
  }
  std::erase_if(active_, [&](const auto& entry) {
    if (!which(entry.second)) return false;
    entry.second.cancelled->store(true);
    return true;
  });
}

void Feeder::finished(ExecutorId executor, RequestId id, BatchOutcome outcome) {
  std::lock_guard lock(mutex_);
  const auto active = active_.find(id);
  if (auto* batch = std::get_if<Batch>(&outcome)) {
    const AnswerKind answer = dispatch_.answer(executor, id);
    if (answer == AnswerKind::kDuplicate) metrics_.count_duplicate();
    if (answer == AnswerKind::kFirst) {
      const std::string_view placement = executor == kLocalExecutor ? "local" : "remote";
      deliver(clients_.at(active->second.client), active->second, std::move(*batch), placement);
      active_.erase(active);
    }
  } else {
    // What a remote worker cannot do, the trainer's own pod may: it sees the data as the user does.
    const bool is_remote = executor != kLocalExecutor;
    const BatchFailure& failure = std::get<BatchFailure>(outcome);
    const FailureKind kind = dispatch_.fail(executor, id, is_remote);
    if (kind == FailureKind::kRetried) {
      metrics_.count_reissued(1);
      log_warning("feeder", "a remote worker failed a batch; tried again locally", {{"address", workers_[executor]}, {"reason", failure.failure.message}});
    } else if (kind == FailureKind::kFinal) {
      fail(clients_.at(active->second.client), active->second, failure);
      active_.erase(active);
    }
  }
  pump();
}

void Feeder::deliver(ClientSession& client, const ActiveRequest& active, Batch batch, std::string_view placement) {
  transport::BatchMessage message{
      .stream = active.request->stream,
      .seq = active.request->seq,
      .slot = batch.slot.id(),
      .copy = false,
      .tensors = std::move(batch.tensors),
      .seconds = batch.busy_seconds,
      .placement = placement,
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
  message.stream = active.request->stream;
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
  const auto clients = static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [](const auto& entry) { return entry.second.greeted; }));
  for (auto& [id, client] : clients_) {
    if (!client.greeted) continue;
    const std::size_t window = window_batches({
        .credits = dispatch_.credits(),
        .clients = clients,
        .prefetch_batches = client.prefetch_batches,
        .arena_bytes = options_.local.arena->bytes(),
        .batch_bytes = client.batch_bytes,
    });
    if (std::exchange(client.window, window) != window) client.connection->send(transport::window_json(window));
  }
}

// ---- executors ----

void Feeder::tick(std::size_t local_threads) {
  std::lock_guard lock(mutex_);
  if (local_threads != local_->threads()) {
    log_info("feeder", "CPU quota changed", {{"threads", local_threads}});
    local_->set_threads(local_threads);
    dispatch_.set_capacity(kLocalExecutor, local_->threads(), local_->threads());
    pump();
    send_windows();
  }
  metrics_.set_outstanding(dispatch_.outstanding());
  metrics_.set_arena_free(options_.local.arena->free_bytes());
}

void Feeder::executor_joined(ExecutorId executor, const std::string& address, std::size_t threads,
                             std::size_t credits) {
  std::lock_guard lock(mutex_);
  dispatch_.add_executor(executor, threads, credits);
  workers_[executor] = address;
  metrics_.set_remote_workers(workers_.size());
  log_info("feeder", "worker joined", {{"address", address}, {"threads", threads}, {"credits", credits}});
  for (const auto& [id, client] : clients_) {
    for (const auto& [number, stream] : client.streams) remote_->load(executor, stream.pipeline);
  }
  send_windows();
}

void Feeder::executor_draining(ExecutorId executor) {
  std::lock_guard lock(mutex_);
  log_info("feeder", "worker drains", {{"address", workers_[executor]}});
  dispatch_.drain(executor);
  send_windows();
}

void Feeder::executor_lost(ExecutorId executor, const std::string& reason) {
  std::lock_guard lock(mutex_);
  const std::size_t reissued = dispatch_.remove_executor(executor);
  log_info("feeder", "worker gone", {{"address", workers_[executor]}, {"reason", reason}, {"reissued", reissued}});
  workers_.erase(executor);
  metrics_.count_reissued(reissued);
  metrics_.set_remote_workers(workers_.size());
  pump();
  send_windows();
}

void Feeder::pipeline_ready(ExecutorId executor, PipelineNumber pipeline) {
  std::lock_guard lock(mutex_);
  dispatch_.allow(executor, pipeline);
  pump();
}

void Feeder::pipeline_refused(ExecutorId executor, PipelineNumber pipeline, const std::string& reason) {
  std::lock_guard lock(mutex_);
  const std::size_t reissued = dispatch_.exclude(executor, pipeline);
  metrics_.count_reissued(reissued);
  log_warning("feeder", "worker cannot run a pipeline", {{"address", workers_[executor]}, {"reason", reason}, {"reissued", reissued}});
  pump();
}

}  // namespace sluice::feeder
