#include "worker-image/worker/worker_service.h"

#include "src/base/clock.h"
#include "src/base/logging.h"
#include "src/executor/process_times.h"
#include "src/transport/worker_forms.h"
#include "worker-image/worker/answers.h"

namespace sluice::worker {
namespace {

using executor::Batch;
using executor::BatchFailure;
using executor::ExecutorKind;
using transport::RemoteStream;

// One batch being computed and one waiting: a thread never idles for the time of a round trip.
constexpr std::size_t kCreditsPerThread = 2;
// Of pipelines whose batches mostly wait, beyond those.
constexpr std::size_t kWaitingMax = executor::ThreadPool::kJobsBesideMax;

}  // namespace

WorkerService::WorkerService(const Options& options, executor::ExecutorMetrics& metrics)
    : credits_(kCreditsPerThread * options.threads),
      arena_(options.arena),
      files_(options.files),
      memory_available_(options.memory_available),
      metrics_(metrics),
      started_cpu_seconds_(process_cpu_seconds()),
      python_({.arena = options.arena,
               .python_path = options.python_path,
               .load_changed = [this](const executor::Pipeline&) { pool_.follow_loads(); },
               .kept = options.kept},
              executor::idle_children_max(options.threads),
              [this](const executor::Pipeline&, executor::LoadWait wait, bool) {
                wait == executor::LoadWait::kBegins ? pool_.begin_wait() : pool_.end_wait();
              }),
      pool_(options.threads, options.threads, kStreamsMax * (credits_ + kWaitingMax), 0),
      read_waits_([this] { return pool_.threads(); },
                  [this](double seconds) { metrics_.count_blocked(ExecutorKind::kNative, seconds); }),
      reading_(pool_) {
  metrics_.set_threads(options.threads);
  follow_memory();
}

WorkerService::~WorkerService() = default;

void WorkerService::tick() {
  python_.end_idle_children();
  follow_memory();
}

void WorkerService::follow_memory() {
  if (memory_available_) pool_.set_jobs_max(python_.children_max(pool_.threads(), memory_available_()));
}

// ---- streams ----

void WorkerService::opened(std::shared_ptr<RemoteStream> stream) {
  std::lock_guard lock(mutex_);
  if (draining_ || feeders_.size() >= kStreamsMax) {
    v1::Header header;
    header.mutable_draining();
    stream->send(header);
    stream->finish();
    return;
  }
  log_info("worker", "feeder connected", {{"streams", feeders_.size() + 1}});
  v1::Header header;
  header.mutable_hello()->set_threads(static_cast<std::uint32_t>(pool_.threads()));
  header.mutable_hello()->set_credits(static_cast<std::uint32_t>(credits_));
  header.mutable_hello()->set_protocol(transport::kProtocolVersion);
  header.mutable_hello()->set_waiting_max(static_cast<std::uint32_t>(kWaitingMax));
  stream->send(header);
  feeders_[stream.get()].stream = std::move(stream);
}

void WorkerService::closed(const std::shared_ptr<RemoteStream>& stream) {
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(stream.get());
  if (feeder == feeders_.end()) return;
  for (const auto& [id, cancelled] : feeder->second.running) cancelled->store(true);
  feeders_.erase(feeder);
  last_used_ = std::chrono::steady_clock::now();
  log_info("worker", "feeder gone", {{"streams", feeders_.size()}});
  changed_.notify_all();
}

std::optional<std::chrono::steady_clock::time_point> WorkerService::unused_since() const {
  std::lock_guard lock(mutex_);
  return feeders_.empty() ? std::optional(last_used_) : std::nullopt;
}

void WorkerService::drain() {
  std::lock_guard lock(mutex_);
  draining_ = true;
  v1::Header header;
  header.mutable_draining();
  for (auto& [key, feeder] : feeders_) {
    feeder.stream->send(header);
    end_if_drained(feeder);
  }
}

void WorkerService::end_if_drained(Feeder& feeder) {
  if (feeder.unfinished > 0) return;
  feeder.ending = true;
  feeder.stream->finish();
}

bool WorkerService::draining() const {
  std::lock_guard lock(mutex_);
  return draining_;
}

bool WorkerService::wait_until_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return feeders_.empty(); });
}

// ---- messages ----

void WorkerService::received(const std::shared_ptr<RemoteStream>& stream, v1::Header header,
                             transport::Payload payload) {
  switch (header.body_case()) {
    case v1::Header::kPipeline: return receive_pipeline(stream, header.pipeline(), payload);
    case v1::Header::kPipelinePart: return receive_pipeline_part(stream, header.pipeline_part().id(), payload);
    case v1::Header::kRequest: return receive_request(stream, header.request());
    case v1::Header::kState: return receive_state(stream, header.state().id(), payload);
    case v1::Header::kForget: return receive_forget(stream, header.forget());
    case v1::Header::kCancel: return receive_cancel(stream, header.cancel().id());
    default: return;  // what newer feeders say
  }
}

void WorkerService::receive_pipeline(const std::shared_ptr<RemoteStream>& stream, const v1::Pipeline& message,
                                     const transport::Payload& payload) {
  if (const std::uint32_t protocol = transport::protocol_of(message); protocol != transport::kProtocolVersion) {
    log_warning("worker", "a feeder of another version is not served",
                {{"its_protocol", protocol}, {"our_protocol", transport::kProtocolVersion}});
    return send_pipeline_error(*stream, message.id(),
                               "the feeder speaks protocol " + std::to_string(protocol) + ", this data worker " +
                                   std::to_string(transport::kProtocolVersion));
  }
  if (message.bytes() > executor::kPipelineBytesMax)
    return send_pipeline_error(*stream, message.id(), "the pipeline is too large");
  auto memory = transport::MemoryWriter::create(message.bytes());
  if (!memory.ok()) return send_pipeline_error(*stream, message.id(), memory.error().message());
  add_piece(stream, {message, std::move(memory).value()}, payload);
}

void WorkerService::receive_pipeline_part(const std::shared_ptr<RemoteStream>& stream, std::uint64_t id,
                                          const transport::Payload& payload) {
  std::optional<ArrivingPipeline> arriving;
  {
    std::lock_guard lock(mutex_);
    const auto feeder = feeders_.find(stream.get());
    if (feeder != feeders_.end()) arriving = std::exchange(feeder->second.arriving, std::nullopt);
  }
  // One that was refused arrives to its end.
  if (arriving && arriving->message.id() == id) add_piece(stream, *std::move(arriving), payload);
}

void WorkerService::add_piece(const std::shared_ptr<RemoteStream>& stream, ArrivingPipeline arriving,
                              const transport::Payload& payload) {
  const std::uint64_t id = arriving.message.id();
  if (payload.bytes() > arriving.memory.bytes_left())
    return send_pipeline_error(*stream, id, "the pipeline arrived damaged: it is longer than was said");
  for (const transport::Payload::Piece& piece : payload.pieces()) {
    const auto added = arriving.memory.append(std::as_bytes(piece));
    if (!added.ok()) return send_pipeline_error(*stream, id, added.error().message());
  }
  if (arriving.memory.bytes_left() > 0) {
    std::lock_guard lock(mutex_);
    const auto feeder = feeders_.find(stream.get());
    if (feeder != feeders_.end()) feeder->second.arriving = std::move(arriving);
    return;
  }
  auto blob = std::move(arriving.memory).seal();
  if (!blob.ok()) return send_pipeline_error(*stream, id, blob.error().message());
  use_pipeline(stream, arriving.message, std::move(blob).value());
}

void WorkerService::use_pipeline(const std::shared_ptr<RemoteStream>& stream, const v1::Pipeline& message,
                                 transport::SealedMemoryHandle blob) {
  const ExecutorKind kind = message.executor() == "python" ? ExecutorKind::kPython : ExecutorKind::kNative;
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    number = next_pipeline_++;
  }
  auto made = executor::make_pipeline(number, kind, std::move(blob), message.python(), message.num_workers(), files_);
  if (made.ok() && (*made)->fingerprint != message.fingerprint())
    made = Error(ErrorCode::kDataLoss, "the pipeline arrived damaged");
  if (!made.ok()) return send_pipeline_error(*stream, message.id(), made.error().message());
  {
    std::lock_guard lock(mutex_);
    const auto feeder = feeders_.find(stream.get());
    if (feeder == feeders_.end()) return;
    auto& pipelines = feeder->second.pipelines;
    if (pipelines.size() >= kPipelinesPerStreamMax) pipelines.erase(pipelines.begin());  // the oldest
    pipelines[message.id()] = *made;
  }
  if (kind == ExecutorKind::kPython) return warm_up(stream, message.id(), *made);
  send_pipeline_ready(*stream, message.id());
}

void WorkerService::warm_up(const std::shared_ptr<RemoteStream>& stream, std::uint64_t id,
                            const executor::PipelineHandle& pipeline) {
  const bool taken = pool_.submit([this, stream, id, pipeline](executor::ThreadState& thread) {
    const auto failure = python_.warm(pipeline, thread.stop);
    if (failure) return send_pipeline_error(*stream, id, failure->failure.message);
    warm_all(stream, id, pipeline);
  });
  if (!taken) send_pipeline_error(*stream, id, "the queue is full");
}

void WorkerService::warm_all(const std::shared_ptr<RemoteStream>& stream, std::uint64_t id,
                             const executor::PipelineHandle& pipeline) {
  struct Progress {
    std::atomic<std::size_t> left;
    std::atomic<bool> failed = false;
  };
  auto progress = std::make_shared<Progress>();
  progress->left = pool_.threads();
  for (std::size_t i = 0; i < pool_.threads(); ++i) {
    const bool taken = pool_.submit([this, stream, id, pipeline, progress](executor::ThreadState& thread) {
      const auto failure = python_.warm(pipeline, thread.stop);
      if (failure && !progress->failed.exchange(true)) send_pipeline_error(*stream, id, failure->failure.message);
      if (--progress->left == 0 && !progress->failed) send_pipeline_ready(*stream, id);
    });
    if (!taken && !progress->failed.exchange(true)) send_pipeline_error(*stream, id, "the queue is full");
  }
}

void WorkerService::receive_state(const std::shared_ptr<RemoteStream>& stream, std::uint64_t id,
                                  const transport::Payload& payload) {
  auto state = std::make_shared<executor::PipelineState>(executor::PipelineState{0, payload.text()});
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(stream.get());
  if (feeder == feeders_.end()) return;
  state->number = next_state_++;
  auto& states = feeder->second.states;
  if (states.size() >= kStatesPerStreamMax) states.erase(states.begin());  // the oldest
  states[id] = std::move(state);
}

void WorkerService::receive_forget(const std::shared_ptr<RemoteStream>& stream, const v1::Forget& message) {
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(stream.get());
  if (feeder == feeders_.end()) return;
  for (const std::uint64_t id : message.pipelines()) feeder->second.pipelines.erase(id);
  for (const std::uint64_t id : message.states()) feeder->second.states.erase(id);
  for (const std::uint64_t pass : message.passes()) feeder->second.passes.erase(pass);
}

void WorkerService::receive_request(const std::shared_ptr<RemoteStream>& stream, const v1::Request& message) {
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(stream.get());
  if (feeder == feeders_.end()) return;
  const auto pipeline = feeder->second.pipelines.find(message.pipeline());
  // It crossed our Draining on the way; the end of the stream tells the feeder that no answer comes.
  if (feeder->second.ending) return;
  if (pipeline == feeder->second.pipelines.end()) {
    return send_failure(*stream, message.id(), unavailable("the pipeline is not loaded here"));
  }
  const auto state = feeder->second.states.find(message.state());
  if (message.state() != 0 && state == feeder->second.states.end()) {
    return send_failure(*stream, message.id(), unavailable("the pipeline's state is not known here"));
  }
  if (feeder->second.running.size() >= credits_ + kWaitingMax) {
    return send_failure(*stream, message.id(), Error(ErrorCode::kResourceExhausted, "more requests than credits"));
  }
  const auto request = std::make_shared<const executor::BatchRequest>(executor::BatchRequest{
      transport::from_proto(message.batch()), pipeline->second, message.state() != 0 ? state->second : nullptr,
      feeder->second.virtual_workers(message.pass(), *pipeline->second), ""});
  const Task task{stream, message.id(), request, std::make_shared<std::atomic<bool>>(false),
                  executor::read_ahead(*request)};
  const Error is_full(ErrorCode::kResourceExhausted, "the queue is full");
  const auto refuse = [this, task, is_full] {
    free_credit(task);
    send_failure(*task.stream, task.id, is_full);
    finish(task, 0);
  };
  const auto work = [this, task](executor::ThreadState& thread) { run(task, thread); };
  if (!reading_.submit(read_waits_.counted(task.ahead), work, refuse, request->pipeline->waits))
    return send_failure(*stream, message.id(), is_full);
  feeder->second.running[message.id()] = task.cancelled;
  ++feeder->second.unfinished;
  metrics_.set_queue_depth(++running_);
}

void WorkerService::receive_cancel(const std::shared_ptr<RemoteStream>& stream, std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(stream.get());
  if (feeder == feeders_.end()) return;
  if (const auto running = feeder->second.running.find(id); running != feeder->second.running.end()) {
    running->second->store(true);
  }
}

// ---- executing threads ----

void WorkerService::run(const Task& task, executor::ThreadState& thread) {
  const double start_seconds = thread_cpu_seconds();
  if (task.request->pipeline->kind == ExecutorKind::kNative) {
    run_native(task, thread);
  } else {
    run_python(task, thread);
  }
  finish(task, thread_cpu_seconds() - start_seconds);
}

void WorkerService::run_native(const Task& task, executor::ThreadState& thread) {
  const double start_seconds = thread_cpu_seconds();
  executor::WaitShare& waits = *task.request->pipeline->waits;
  const auto queued_before = waits.wants_exact() ? executor::own_queued_seconds() : std::nullopt;
  std::size_t bytes = 0;
  pipeline::OpCosts costs;
  const auto emit = [&](executor::PixelChunk piece) {
    v1::Header header;
    auto* chunk = header.mutable_chunk();
    chunk->set_id(task.id);
    chunk->set_first_sample(piece.first_sample);
    chunk->set_samples(piece.samples);
    chunk->set_last(piece.last);
    if (piece.last) {
      costs = thread.scratch.take_costs();
      transport::set_costs(*chunk, thread_cpu_seconds() - start_seconds, executor::costs_by_op(costs),
                           executor::blocked_seconds(costs));
    }
    bytes += piece.bytes;
    const auto slot = std::make_shared<const transport::ArenaSlot>(std::move(piece.slot));
    if (piece.last) free_credit(task);
    task.stream->send(header, {slot->data(), piece.bytes}, slot);
  };
  const auto done = executor::run_native_chunks(
      *task.request, *arena_, thread.scratch, [&] { return task.cancelled->load(); }, thread.stop, emit);
  costs.add(thread.scratch.take_costs());  // of a batch without a last chunk
  const double busy_seconds = thread_cpu_seconds() - start_seconds;
  const auto queued = queued_before ? executor::own_queued_seconds() : std::nullopt;
  const bool has_changed = queued ? waits.observe(busy_seconds, costs.blocked_seconds - (*queued - *queued_before))
                                  : waits.observe_rough(busy_seconds, costs.blocked_seconds);
  if (has_changed) pool_.follow_loads();
  metrics_.count_ops(costs);
  if (done.ok()) return metrics_.count_batch(ExecutorKind::kNative, task.request->indices.size(), busy_seconds, bytes);
  if (*task.cancelled) {
    metrics_.count_unwanted(ExecutorKind::kNative, busy_seconds);
  } else {
    metrics_.count_error(ExecutorKind::kNative, busy_seconds);
  }
  free_credit(task);
  send_failure(*task.stream, task.id, done.error());
}

void WorkerService::run_python(const Task& task, executor::ThreadState& thread) {
  const double start_seconds = thread_cpu_seconds();
  auto outcome = python_.run(*task.request, thread.stop, [&] { return task.cancelled->load(); });
  free_credit(task);
  if (*task.cancelled) {
    const auto* unwanted = std::get_if<Batch>(&outcome);
    const double child_seconds = unwanted != nullptr ? unwanted->busy_seconds : 0;
    metrics_.count_unwanted(ExecutorKind::kPython, thread_cpu_seconds() - start_seconds + child_seconds);
    return send_failure(*task.stream, task.id, executor::no_longer_wanted());
  }
  if (auto* failure = std::get_if<BatchFailure>(&outcome)) {
    metrics_.count_error(ExecutorKind::kPython, thread_cpu_seconds() - start_seconds);
    return send_failure(*task.stream, task.id, *failure);
  }
  Batch& batch = std::get<Batch>(outcome);
  batch.busy_seconds += thread_cpu_seconds() - start_seconds;
  const double busy_seconds = batch.busy_seconds;
  if (batch.blocked_seconds) metrics_.count_blocked(ExecutorKind::kPython, *batch.blocked_seconds);
  const std::size_t bytes = send_batch(*task.stream, task.id, std::move(batch));
  metrics_.count_batch(ExecutorKind::kPython, task.request->indices.size(), busy_seconds, bytes);
}

void WorkerService::free_credit(const Task& task) {
  std::lock_guard lock(mutex_);
  const auto feeder = feeders_.find(task.stream.get());
  if (feeder != feeders_.end()) feeder->second.running.erase(task.id);
}

void WorkerService::finish(const Task& task, double thread_seconds) {
  std::lock_guard lock(mutex_);
  executing_seconds_ += thread_seconds;
  metrics_.set_transport_seconds(process_cpu_seconds() - started_cpu_seconds_ - executing_seconds_);
  metrics_.set_queue_depth(--running_);
  const auto feeder = feeders_.find(task.stream.get());
  if (feeder == feeders_.end()) return;
  --feeder->second.unfinished;
  if (draining_) end_if_drained(feeder->second);
}

}  // namespace sluice::worker
