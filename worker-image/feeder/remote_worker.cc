#include "worker-image/feeder/remote_worker.h"

#include "src/base/logging.h"
#include "src/transport/worker_forms.h"

namespace sluice::feeder {
namespace {

using executor::BatchFailure;
using executor::ExecutorKind;
using v1::Chunk;
using v1::Header;

// Far above any arena; below it sums cannot overflow.
constexpr std::uint64_t kTensorBytesMax = std::uint64_t{1} << 40;

Error bad_chunk(const std::string& what) { return {ErrorCode::kDataLoss, "the worker sent a wrong chunk: " + what}; }

BatchFailure cancelled_failure() { return executor::to_failure(executor::no_longer_wanted()); }

std::span<std::byte> slot_bytes(const transport::ArenaSlot& slot) { return {slot.data(), slot.bytes()}; }

}  // namespace

RemoteWorker::RemoteWorker(ExecutorId executor, std::string address, const transport::RemoteClient::Connect& connect,
                           std::shared_ptr<transport::Arena> arena, ExecutorEvents& events)
    : executor_(executor),
      address_(std::move(address)),
      arena_(std::move(arena)),
      events_(events),
      self_(std::make_shared<Self>()) {
  self_->worker = this;
  client_ = connect(address_, *this);
}

RemoteWorker::~RemoteWorker() {
  {
    // From here on a slot that is granted late goes straight back.
    std::lock_guard lock(self_->mutex);
    self_->worker = nullptr;
  }
  client_.reset();
}

bool RemoteWorker::is_over() const {
  std::lock_guard lock(mutex_);
  return over_ || refused_;
}

bool RemoteWorker::has_joined() const {
  std::lock_guard lock(mutex_);
  return joined_;
}

// ---- to the worker ----

void RemoteWorker::load(const executor::PipelineHandle& pipeline) {
  Header header;
  auto* message = header.mutable_pipeline();
  message->set_id(pipeline->number);
  message->set_fingerprint(pipeline->fingerprint);
  message->set_executor(std::string(to_string(pipeline->kind)));
  message->set_python(pipeline->python);
  message->set_num_workers(pipeline->num_workers);
  message->set_protocol(transport::kProtocolVersion);
  std::lock_guard lock(mutex_);
  if (closed_) return;
  send_forget();
  if (!pipelines_sent_.emplace(pipeline->number, pipeline).second) return;
  // In pieces, each sent from where it is: the worker need not hold the whole of a large data set twice.
  auto left = std::as_bytes(std::span(pipeline->blob->bytes()));
  message->set_bytes(left.size());
  do {
    const auto piece = left.first(std::min(left.size(), executor::kChunkBytes));
    client_->send(header, piece, pipeline);
    header.mutable_pipeline_part()->set_id(pipeline->number);
    left = left.subspan(piece.size());
  } while (!left.empty());
}

void RemoteWorker::send_state(const executor::StateHandle& state) {
  if (!states_sent_.emplace(state->number, state).second) return;
  Header header;
  header.mutable_state()->set_id(state->number);
  client_->send(header, std::as_bytes(std::span(state->blob)), state);
}

void RemoteWorker::send_forget() {
  Header header;
  auto* message = header.mutable_forget();
  std::erase_if(pipelines_sent_, [&](const auto& entry) {
    if (entry.second.expired()) message->add_pipelines(entry.first);
    return entry.second.expired();
  });
  std::erase_if(states_sent_, [&](const auto& entry) {
    if (entry.second.expired()) message->add_states(entry.first);
    return entry.second.expired();
  });
  std::erase_if(passes_sent_, [&](const auto& entry) {
    if (entry.second.expired()) message->add_passes(entry.first);
    return entry.second.expired();
  });
  if (message->pipelines_size() + message->states_size() + message->passes_size() > 0) client_->send(header);
}

void RemoteWorker::execute(RequestId id, const executor::RequestHandle& request) {
  Header header;
  auto* message = header.mutable_request();
  message->set_id(id);
  message->set_pipeline(request->pipeline->number);
  transport::to_proto(*request, *message->mutable_batch());
  if (request->state != nullptr) message->set_state(request->state->number);
  if (request->virtual_workers != nullptr) message->set_pass(request->virtual_workers->pass);
  std::lock_guard lock(mutex_);
  if (closed_) return;
  if (request->virtual_workers != nullptr)
    passes_sent_.emplace(request->virtual_workers->pass, request->virtual_workers);
  if (request->state != nullptr) send_state(request->state);
  assemblies_[id].request = request;
  client_->send(header);
}

transport::ArenaSlot RemoteWorker::cancel(RequestId id) {
  Header header;
  header.mutable_cancel()->set_id(id);
  std::lock_guard lock(mutex_);
  const auto assembly = assemblies_.find(id);
  if (assembly == assemblies_.end() || closed_) return {};
  assembly->second.cancelled = true;
  client_->send(header);
  return std::move(assembly->second.slot);
}

// ---- from the worker ----

void RemoteWorker::received(Header header, transport::Payload payload, transport::ReadPermit permit) {
  switch (header.body_case()) {
    case Header::kHello: return received_hello(header.hello());
    case Header::kChunk: return received_chunk(std::move(header), std::move(payload), std::move(permit));
    case Header::kFailure: return received_failure(header.failure(), payload);
    case Header::kPipelineReady: return events_.pipeline_ready(executor_, header.pipeline_ready().id());
    case Header::kPipelineError:
      return events_.pipeline_refused(executor_, header.pipeline_error().id(), header.pipeline_error().message());
    case Header::kDraining: return events_.executor_draining(executor_);
    default: return;  // what newer workers say
  }
}

void RemoteWorker::received_hello(const v1::Hello& hello) {
  const std::uint32_t protocol = transport::protocol_of(hello);
  {
    std::lock_guard lock(mutex_);
    if (joined_ || refused_) return;
    (protocol == transport::kProtocolVersion ? joined_ : refused_) = true;
  }
  if (protocol != transport::kProtocolVersion) return events_.executor_refused(address_, protocol);
  events_.executor_joined(executor_, address_, hello.threads(), hello.credits(), hello.waiting_max());
}

void RemoteWorker::received_failure(const v1::Failure& failure, const transport::Payload& payload) {
  BatchFailure outcome;
  outcome.failure = {failure.exception_type(), failure.message(), failure.traceback()};
  outcome.exception = payload.text();
  answer(failure.id(), std::move(outcome));
}

void RemoteWorker::answer(RequestId id, BatchOutcome outcome) {
  Assembly done;  // its slot is freed after the lock
  {
    std::lock_guard lock(mutex_);
    if (auto assembly = assemblies_.extract(id)) done = std::move(assembly.mapped());
  }
  events_.finished(executor_, id, std::move(outcome));
}

void RemoteWorker::received_chunk(Header header, transport::Payload payload, transport::ReadPermit permit) {
  auto arrival = std::make_shared<Arrival>();
  arrival->id = header.chunk().id();
  bool unwanted = false;
  {
    std::lock_guard lock(mutex_);
    const auto assembly = assemblies_.find(arrival->id);
    if (assembly == assemblies_.end()) return;
    unwanted = assembly->second.cancelled;
    // Taken out while it is being worked on: cancel() may come at any time.
    if (!unwanted) arrival->assembly = std::exchange(assembly->second, Assembly{.request = assembly->second.request});
  }
  if (unwanted) {
    if (header.chunk().last()) answer(arrival->id, cancelled_failure());
    return;
  }
  arrival->header = std::move(header);
  arrival->payload = std::move(payload);
  arrival->permit = std::move(permit);
  if (arrival->assembly.slot.valid()) return place(std::move(*arrival));
  const auto bytes = begin(arrival->assembly, arrival->header.chunk());
  if (!bytes.ok()) return answer(arrival->id, executor::to_failure(bytes.error()));
  allocate_then_place(arrival, *bytes);
}

void RemoteWorker::allocate_then_place(const std::shared_ptr<Arrival>& arrival, std::size_t bytes) {
  const std::shared_ptr<Self> self = self_;
  arena_->allocate_async(bytes, [self, arrival](Result<transport::ArenaSlot> slot) {
    std::lock_guard lock(self->mutex);
    if (self->worker == nullptr) return;
    if (!slot.ok()) return self->worker->answer(arrival->id, executor::to_failure(slot.error()));
    arrival->assembly.slot = std::move(slot).value();
    self->worker->place(std::move(*arrival));
  });
}

void RemoteWorker::place(Arrival arrival) {
  const Chunk& chunk = arrival.header.chunk();
  const auto placed = copy_in(arrival.assembly, chunk, arrival.payload);
  if (!placed.ok()) return answer(arrival.id, executor::to_failure(placed.error()));
  if (chunk.last()) {
    return answer(arrival.id, finished_batch(std::move(arrival.assembly), chunk));
  }
  Assembly unwanted;  // freed after the lock
  std::lock_guard lock(mutex_);
  const auto assembly = assemblies_.find(arrival.id);
  if (assembly == assemblies_.end() || assembly->second.cancelled) {
    unwanted = std::move(arrival.assembly);
  } else {
    assembly->second = std::move(arrival.assembly);
  }
}

executor::Batch RemoteWorker::finished_batch(Assembly assembly, const Chunk& last) {
  executor::Batch batch{std::move(assembly.slot), std::move(assembly.tensors), std::move(assembly.structure),
                        last.seconds(), std::nullopt};
  if (last.has_blocked_seconds()) batch.blocked_seconds = last.blocked_seconds();
  batch.from_memory = last.from_memory();
  for (int i = 0; i < last.ops_size() && batch.ops.size() < transport::kOpCostsMax; ++i)
    batch.ops.push_back(transport::from_proto(last.ops(i)));
  for (int i = 0; i < last.kept_size() && batch.kept.size() < transport::kKeptFunctionsMax; ++i)
    batch.kept.push_back(transport::from_proto(last.kept(i)));
  if (assembly.finishing.bytes > 0) {
    batch.busy_seconds += assembly.finishing.seconds;
    batch.ops.push_back({"finish", assembly.finishing.seconds, assembly.finishing.bytes});
  }
  return batch;
}

Result<std::size_t> RemoteWorker::begin(Assembly& assembly, const Chunk& chunk) {
  const executor::Pipeline& pipeline = *assembly.request->pipeline;
  if (pipeline.kind == ExecutorKind::kNative) {
    const std::size_t samples = assembly.request->indices.size();
    assembly.tensors = executor::native_tensors(pipeline, samples);
    return pipeline.native->schema().batch_bytes(samples);
  }
  std::size_t bytes = 0;
  for (const auto& tensor : chunk.tensors()) {
    if (tensor.offset() % transport::kTensorAlignment != 0) return bad_chunk("a tensor is not aligned");
    if (tensor.nbytes() > kTensorBytesMax || tensor.offset() > kTensorBytesMax) {
      return bad_chunk("a tensor is too large");
    }
    assembly.tensors.push_back(transport::from_proto(tensor));
    bytes = std::max<std::size_t>(bytes, tensor.offset() + tensor.nbytes());
  }
  assembly.structure = chunk.structure();
  return bytes;
}

Result<void> RemoteWorker::copy_in(Assembly& assembly, const Chunk& chunk, const transport::Payload& payload) {
  if (assembly.request->pipeline->kind == ExecutorKind::kNative) return copy_in_native(assembly, chunk, payload);
  const auto slot = slot_bytes(assembly.slot);
  if (chunk.offset() != assembly.done || payload.bytes() > slot.size() - assembly.done)
    return bad_chunk("out of place");
  payload.copy_to(0, {reinterpret_cast<std::uint8_t*>(slot.data()) + assembly.done, payload.bytes()});
  assembly.done += payload.bytes();
  if (!chunk.last()) return {};
  for (const auto& tensor : assembly.tensors) {
    if (tensor.offset + tensor.nbytes > assembly.done) return bad_chunk("the batch is not complete");
  }
  return {};
}

Result<void> RemoteWorker::copy_in_native(Assembly& assembly, const Chunk& chunk, const transport::Payload& payload) {
  const executor::BatchRequest& request = *assembly.request;
  const pipeline::NativePipeline& native = *request.pipeline->native;
  const std::size_t total = request.indices.size();
  const std::size_t sample_bytes = native.wire_sample_bytes();
  if (chunk.first_sample() != assembly.done || chunk.samples() > total - assembly.done ||
      payload.bytes() != chunk.samples() * sample_bytes) {
    return bad_chunk("out of place");
  }
  pipeline::Stopwatch stopwatch;
  static thread_local std::vector<std::uint8_t> scratch;  // for samples that straddle two of gRPC's buffers
  std::size_t made_bytes = 0;
  for (std::size_t i = 0; i < chunk.samples(); ++i) {
    made_bytes += executor::finish_in_slot(native, payload.contiguous(i * sample_bytes, sample_bytes, scratch), total,
                                           assembly.done + i, slot_bytes(assembly.slot));
  }
  stopwatch.lap(assembly.finishing, made_bytes);
  assembly.done += chunk.samples();
  if (chunk.last() != (assembly.done == total)) return bad_chunk("the batch is not complete");
  if (chunk.last()) executor::write_labels(request, slot_bytes(assembly.slot));
  return {};
}

void RemoteWorker::closed(const std::string& reason) {
  std::map<RequestId, Assembly> dropped;  // slots are freed after the lock
  bool joined = false;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    joined = joined_;
    dropped.swap(assemblies_);
  }
  if (joined) {
    events_.executor_lost(executor_, reason);
  } else {
    log_debug("feeder", "worker not reached", {{"address", address_}, {"reason", reason}});
  }
  std::lock_guard lock(mutex_);
  over_ = true;
}

}  // namespace sluice::feeder
