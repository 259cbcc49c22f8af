#include "worker-image/feeder/feeder.h"

#include <algorithm>

#include "src/base/logging.h"
#include "src/executor/shared_work.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/native_pipeline.h"

namespace sluice::feeder {
namespace {

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
    reply.seq = request->batch.seq;
  } else if (const auto* open = std::get_if<transport::OpenMessage>(&message)) {
    reply.stream = open->stream;
  }
  return reply;
}

}  // namespace

Feeder::Locked::Locked(Feeder& feeder) : feeder_(feeder) { feeder_.mutex_.lock(); }

Feeder::Locked::~Locked() {
  const std::vector<transport::ArenaSlot> freed = std::exchange(feeder_.freed_, {});
  feeder_.mutex_.unlock();
}

Feeder::Feeder(Options options, const Clock& clock, executor::ExecutorMetrics& executor_metrics, FeederMetrics& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      quota_threads_(options_.local.threads),
      local_(std::make_unique<LocalExecutor>(
          options_.local, executor_metrics,
          [this](const executor::Pipeline& pipeline, bool is_loaded) { load_changed(pipeline.number, is_loaded); },
          [this](const executor::Pipeline& pipeline) { waits_changed(pipeline); })),
      pipeline_reader_(1, 1, SocketServer::kClientsMax, 0),
      ender_(1, 1, SocketServer::kClientsMax, 0),
      announcer_(1, 1, SocketServer::kClientsMax, 0) {
  dispatch_.add_executor(kLocalExecutor, local_->threads(), local_->threads());
  set_local_capacity();
  lateness_ = std::jthread([this](const std::stop_token& stop) { watch_lateness(stop); });
}

Feeder::~Feeder() {
  const Locked lock(*this);
  ending_ = true;  // what is being made may still end, and starts nothing more on executors that are going
}

// ---- clients ----

void Feeder::connected(std::shared_ptr<Connection> connection) {
  const Locked lock(*this);
  dispatch_.add_client(connection->id());
  clients_[connection->id()].connection = std::move(connection);
}

void Feeder::received(std::uint64_t id, transport::Frame frame) {
  auto parsed = transport::parse_client_message(frame.json);
  const Locked lock(*this);
  ClientSession& client = clients_.at(id);
  if (!parsed.ok()) return client.connection->send(to_json(error_reply(parsed.error())));
  if (!client.greeted && !std::holds_alternative<transport::HelloMessage>(*parsed)) {
    client.connection->send(to_json(error_reply(invalid_argument("frame.type: the first message must be hello"))));
    return client.connection->close_after_sending();
  }
  const auto result = std::visit(
      [&](auto& message) -> Result<void> {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (std::is_same_v<Message, transport::OpenMessage>)
          return handle(client, message, std::move(frame.blob));
        else if constexpr (std::is_same_v<Message, transport::RequestMessage>)
          return handle(client, message, std::move(frame.blob));
        else
          return handle(client, message);
      },
      *parsed);
  if (!result.ok()) client.connection->send(to_json(error_reply(result.error(), *parsed)));
}

void Feeder::broken(std::uint64_t id, const Error& error) {
  const Locked lock(*this);
  log_warning("feeder", "client disconnected: " + error.message(), {{"client", id}});
  clients_.at(id).connection->send(to_json(error_reply(error)));
}

void Feeder::disconnected(std::uint64_t id) {
  const Locked lock(*this);
  const auto client = clients_.find(id);
  cancel(dispatch_.remove_client(id), [&](const ActiveRequest& active) { return active.client == id; });
  for (auto& [slot_id, slot] : client->second.slots) freed_.push_back(std::move(slot));
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
  const bool takes_orders = options_.files != nullptr && options_.files->takes_orders();
  client.connection->send(transport::welcome_json(arena.bytes(), options_.session, takes_orders), "", arena.fd());
  log_info("feeder", "client connected",
           {{"client", client.connection->id()}, {"rank", message.rank}, {"pid", message.pid}});
  send_windows();
  return {};
}

Result<executor::PipelineHandle> Feeder::shared_pipeline(ClientId client, const transport::PipelineMessage& message,
                                                         transport::UniqueFd memory) {
  SLUICE_TRY(auto blob, transport::SealedMemory::adopt(std::move(memory), executor::kPipelineBytesMax));
  const ExecutorKind kind = message.executor == "native" ? ExecutorKind::kNative : ExecutorKind::kPython;
  // The same pipeline of several ranks, or of every epoch's iterator, is parsed and sent to workers once.
  std::string fingerprint = executor::pipeline_fingerprint(kind, blob->bytes());
  // What a data set keeps in its process, its rank for instance, must not meet another rank's batches.
  const ClientId owner = options_.ranks > 1 && kind == ExecutorKind::kPython ? client : 0;
  const std::string key = fingerprint + " " + number(message.num_workers) + " " + number(owner) + " " + message.python;
  PipelineNumber pipeline_number = 0;
  {
    const Locked lock(*this);
    if (const auto known = pipelines_.find(key); known != pipelines_.end()) {
      if (auto pipeline = known->second.pipeline.lock()) return pipeline;
    }
    pipeline_number = next_pipeline_++;
  }
  SLUICE_TRY(auto pipeline,
             executor::make_pipeline(pipeline_number, kind, std::move(blob), message.python, message.num_workers,
                                     std::move(fingerprint), options_.files, owner));
  const Locked lock(*this);
  std::erase_if(pipelines_, [&](const auto& entry) {
    const bool expired = entry.second.pipeline.expired();
    if (expired) dispatch_.forget_pipeline(entry.second.number);
    return expired;
  });
  pipelines_[key] = {pipeline_number, pipeline};
  if (kind == ExecutorKind::kPython) dispatch_.set_loaded(kLocalExecutor, pipeline_number, false, clock_.now());
  return pipeline;
}

Result<void> Feeder::handle(ClientSession& client, transport::PipelineMessage message) {
  const std::shared_ptr<Connection> connection = client.connection;
  const auto memory = std::make_shared<transport::UniqueFd>(connection->take_passed_fd());
  connection->pause();  // its next messages may need the pipeline
  const bool taken = pipeline_reader_.submit([this, connection, memory, message = std::move(message)](auto&) {
    keep_pipeline(connection->id(), message, shared_pipeline(connection->id(), message, std::move(*memory)));
    connection->resume();
  });
  if (taken) return {};
  connection->resume();
  return internal_error("pipeline: more clients than there may be");
}

void Feeder::keep_pipeline(ClientId id, const transport::PipelineMessage& message,
                           const Result<executor::PipelineHandle>& pipeline) {
  const Locked lock(*this);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;  // disconnected meanwhile
  ClientSession& client = found->second;
  if (!pipeline.ok()) return client.connection->send(transport::not_ready_json(message.id, pipeline.error().message()));
  if (client.pipelines.size() >= kPipelinesPerClientMax)
    client.pipelines.erase(client.pipelines.begin());  // the oldest
  client.pipelines[message.id] = {*pipeline, message.prefetch_batches, nullptr};
  follow_threads();
  client.prefetch_batches = std::max<std::size_t>(client.prefetch_batches, message.prefetch_batches);
  client.connection->send(transport::ready_json(message.id, (*pipeline)->fingerprint));
  client.batch_bytes_hint = std::max<std::size_t>(client.batch_bytes_hint, message.batch_bytes_hint);
  send_windows();
}

Result<void> Feeder::handle(ClientSession& client, const transport::OpenMessage& message, std::string state) {
  const auto pipeline = client.pipelines.find(message.pipeline);
  if (pipeline == client.pipelines.end())
    return invalid_argument("open.pipeline: " + number(message.pipeline) + " is unknown");
  if (client.streams.contains(message.stream))
    return invalid_argument("open.stream: " + number(message.stream) + " is open already");
  if (client.streams.size() >= kStreamsPerClientMax) {
    return invalid_argument("open.stream: more than " + number(kStreamsPerClientMax) + " streams are open");
  }
  if (message.virtual_workers > 0 && message.virtual_workers != pipeline->second.pipeline->num_workers)
    return invalid_argument("open.virtual_workers: must be the pipeline's num_workers");
  // A state that is the same as last time keeps its number, and those who have it need not get it again.
  auto& last = pipeline->second.state;
  if (state.empty())
    last.reset();
  else if (last == nullptr || last->blob != state)
    last = std::make_shared<executor::PipelineState>(executor::PipelineState{next_state_++, std::move(state)});
  auto& stream = client.streams[message.stream];
  stream = {pipeline->second.pipeline, last, message.base_seed, message.epoch, nullptr, {}};
  if (message.virtual_workers > 0) {
    stream.virtual_workers =
        std::make_shared<executor::VirtualWorkers>(message.virtual_workers, message.portable, next_pass_++);
    if (!message.portable) return {};
  }
  if (message.order) announce(pipeline->second.pipeline, *message.order);
  for (const auto& [executor, address] : workers_) remote_->load(executor, pipeline->second.pipeline);
  return {};
}

void Feeder::announce(const executor::PipelineHandle& pipeline, const EpochOrder& order) {
  if (pipeline->native == nullptr || options_.files == nullptr || !options_.files->takes_orders()) return;
  static_cast<void>(
      announcer_.submit([pipeline, order](executor::ThreadState&) { pipeline->native->announce(order); }));
}

Result<void> Feeder::handle(ClientSession& client, transport::RequestMessage message, std::string history) {
  const auto stream = client.streams.find(message.stream);
  if (stream == client.streams.end())
    return invalid_argument("request.stream: " + number(message.stream) + " is not open");
  message.batch.base_seed = stream->second.base_seed;
  message.batch.epoch = stream->second.epoch;
  const auto request = std::make_shared<const executor::BatchRequest>(
      executor::BatchRequest{std::move(message.batch), stream->second.pipeline, stream->second.state,
                             stream->second.virtual_workers, std::move(history)});
  if (request->pipeline->kind == ExecutorKind::kNative) {
    if (const auto checked = executor::check_indices(*request); !checked.ok())
      return checked.error().with_context("request");
    note_batch_bytes(client, request->pipeline->native->schema().batch_bytes(request->indices.size()));
  }
  const RequestId id = next_request_++;
  std::optional<VirtualWorker> virtual_worker;
  if (const auto& pass = request->virtual_workers; pass != nullptr)
    virtual_worker = VirtualWorker{request->virtual_worker(), pass->is_portable};
  const std::size_t samples = request->indices.size();
  const std::size_t threads_max =
      request->pipeline->kind == ExecutorKind::kNative ? executor::SharedWork::threads_max(samples) : 1;
  if (!dispatch_.submit(client.connection->id(), message.stream, request->pipeline->number, id, samples, virtual_worker,
                        threads_max)) {
    return Error(ErrorCode::kResourceExhausted,
                 "request: far beyond the window of " + number(client.window) + " batches");
  }
  // Where there are data workers, it is known later who makes the batch, and reads for it.
  active_.emplace(
      id, ActiveRequest{client.connection->id(), message.stream, request, std::make_shared<std::atomic<bool>>(false),
                        workers_.empty() ? executor::read_ahead(*request) : nullptr});
  pump();
  return {};
}

Result<void> Feeder::handle(ClientSession& client, const transport::ReleaseMessage& message) {
  Result<void> result;
  for (const std::uint64_t id : message.slots) {
    if (auto slot = client.slots.extract(id))
      freed_.push_back(std::move(slot.mapped()));
    else
      result = invalid_argument("release.slots: " + number(id) + " is not in this client's hands");
  }
  dispatch_.set_held(client.connection->id(), client.slots.size());
  return result;
}

Result<void> Feeder::handle(ClientSession& client, const transport::ProgressMessage& message) {
  const auto stream = client.streams.find(message.stream);
  if (stream == client.streams.end())
    return invalid_argument("progress.stream: " + number(message.stream) + " is not open");
  metrics_.count_progress(client.rank, stream->second.progress, message);
  note_pace(client, stream->second, message);
  const transport::ProgressMessage& before = stream->second.progress;
  if (const std::string line = client.arena_fit.told_of_wait(message.wait_seconds - before.wait_seconds,
                                                             message.compute_seconds - before.compute_seconds);
      !line.empty())
    log_warning("feeder", line, {{"client", client.connection->id()}, {"rank", client.rank}});
  stream->second.progress = message;
  return {};
}

void Feeder::note_pace(ClientSession& client, ClientSession::Stream& stream, const transport::ProgressMessage& now) {
  const transport::ProgressMessage& before = stream.progress;
  if (now.batches > before.batches) {
    const double seconds =
        (now.compute_seconds - before.compute_seconds) / static_cast<double>(now.batches - before.batches);
    // One long step, a checkpoint say, must not make the next ones look as long.
    const double earlier = std::exchange(stream.step_seconds, seconds);
    dispatch_.set_pace(client.connection->id(), now.stream, now.batches, std::min(earlier, seconds), clock_.now());
  }
}

Result<void> Feeder::handle(ClientSession& client, const transport::CloseMessage& message) {
  const auto closed = client.streams.extract(message.stream);
  if (closed.empty()) return invalid_argument("close.stream: " + number(message.stream) + " is not open");
  const ClientId id = client.connection->id();
  cancel(dispatch_.cancel_stream(id, message.stream),
         [&](const ActiveRequest& active) { return active.client == id && active.stream == message.stream; });
  pump();
  if (message.ends_executors) end_executors(client.connection, message.stream, closed.mapped());
  return {};
}

void Feeder::end_executors(const std::shared_ptr<Connection>& connection, std::uint64_t number,
                           const ClientSession::Stream& stream) {
  bool is_used = false;
  for (const auto& [id, client] : clients_)
    for (const auto& [other, open] : client.streams) is_used |= open.pipeline == stream.pipeline;
  const auto tell = [connection, number] { connection->send(transport::closed_json(number)); };
  const std::weak_ptr<const executor::VirtualWorkers> pass = stream.virtual_workers;
  const bool ends = !is_used && ender_.submit([this, tell, pipeline = stream.pipeline, pass](executor::ThreadState&) {
    local_->end_children(*pipeline, pass);
    tell();
  });
  if (!ends) tell();
}

Result<void> Feeder::handle(ClientSession& client, const transport::ForgetMessage& message) {
  if (client.pipelines.erase(message.pipeline) > 0) return {};
  return invalid_argument("forget.pipeline: " + number(message.pipeline) + " is unknown");
}

}  // namespace sluice::feeder
