#include "worker-image/feeder/remote_worker.h"

#include "src/base/logging.h"

namespace sluice::feeder {
namespace {

using executor::BatchFailure;
using executor::ExecutorKind;
using v1::Chunk;
using v1::Header;

// Far above any arena; below it sums cannot overflow.
constexpr std::uint64_t kTensorBytesMax = std::uint64_t{1} << 40;

Error bad_chunk(const std::string& what) { return {ErrorCode::kDataLoss, "the worker sent a wrong chunk: " + what}; }

BatchFailure cancelled_failure() {
  return executor::to_failure(Error(ErrorCode::kCancelled, "the batch is no longer wanted"));
}

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
  return over_;
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
  std::lock_guard lock(mutex_);
  if (closed_ || !pipelines_sent_.insert(pipeline->number).second) return;
  // The blob of a large data set is many megabytes: sent from where it is.
  client_->send(header, std::as_bytes(std::span(pipeline->blob)), pipeline);
}

void RemoteWorker::execute(RequestId id, const executor::RequestHandle& request) {
  Header header;
  auto* message = header.mutable_request();
  message->set_id(id);
  message->set_pipeline(request->pipeline->number);
  message->set_stream(request->stream);
  message->set_seq(request->seq);
  message->set_base_seed(request->base_seed);
  message->set_epoch(request->epoch);
  message->set_position(request->position);
  message->mutable_indices()->Add(request->indices.begin(), request->indices.end());
  std::lock_guard lock(mutex_);
  if (closed_) return;
  assemblies_[id].request = request;
  client_->send(header);
}

void RemoteWorker::cancel(RequestId id) {
  transport::ArenaSlot freed;  // after the lock
  Header header;
  header.mutable_cancel()->set_id(id);
  std::lock_guard lock(mutex_);
  const auto assembly = assemblies_.find(id);
  if (assembly == assemblies_.end() || closed_) return;
  assembly->second.cancelled = true;
  freed = std::move(assembly->second.slot);
  client_->send(header);
}

// ---- from the worker ----

void RemoteWorker::received(Header header, transport::Payload payload, transport::ReadPermit permit) {
  switch (header.body_case()) {
    case Header::kHello: {
      {
        std::lock_guard lock(mutex_);
        if (std::exchange(joined_, true)) return;
      }
      return events_.executor_joined(executor_, address_, header.hello().threads(), header.hello().credits());
    }
    case Header::kChunk: return received_chunk(std::move(header), std::move(payload), std::move(permit));
    case Header::kFailure: return received_failure(header.failure(), payload);
    case Header::kPipelineReady: return events_.pipeline_ready(executor_, header.pipeline_ready().id());
    case Header::kPipelineError:
      return events_.pipeline_refused(executor_, header.pipeline_error().id(), header.pipeline_error().message());
    case Header::kDraining: return events_.executor_draining(executor_);
    default: return;  // what newer workers say
  }
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
  allocate_then_place(std::move(arrival), *bytes);
}

void RemoteWorker::allocate_then_place(std::shared_ptr<Arrival> arrival, std::size_t bytes) {
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
    Assembly& assembly = arrival.assembly;
    return answer(arrival.id, executor::Batch{std::move(assembly.slot), std::move(assembly.tensors),
                                              std::move(assembly.structure), chunk.seconds()});
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

Result<std::size_t> RemoteWorker::begin(Assembly& assembly, const Chunk& chunk) {
  const executor::Pipeline& pipeline = *assembly.request->pipeline;
  if (pipeline.kind == ExecutorKind::kNative) {
    const std::size_t samples = assembly.request->indices.size();
    assembly.tensors = executor::native_tensors(pipeline, samples);
    return pipeline.native->batch_bytes(samples);
  }
  std::size_t bytes = 0;
  for (const auto& tensor : chunk.tensors()) {
    if (tensor.offset() % transport::kTensorAlignment != 0) return bad_chunk("a tensor is not aligned");
    if (tensor.nbytes() > kTensorBytesMax || tensor.offset() > kTensorBytesMax) {
      return bad_chunk("a tensor is too large");
    }
    assembly.tensors.push_back(
        {tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}, tensor.offset(), tensor.nbytes()});
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
  static thread_local std::vector<std::uint8_t> scratch;  // for samples that straddle two of gRPC's buffers
  for (std::size_t i = 0; i < chunk.samples(); ++i) {
    native.finish(payload.contiguous(i * sample_bytes, sample_bytes, scratch),
                  executor::image_in_slot(*request.pipeline, assembly.done + i, slot_bytes(assembly.slot)));
  }
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
