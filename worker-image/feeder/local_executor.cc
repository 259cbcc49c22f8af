#include "worker-image/feeder/local_executor.h"

#include "src/base/clock.h"

namespace sluice::feeder {
namespace {

using executor::Batch;
using executor::BatchFailure;
using executor::BatchRequest;
using executor::ExecutorKind;

constexpr std::size_t kQueueMax = 8192;

std::size_t batch_bytes(const Batch& batch) {
  std::size_t total = 0;
  for (const auto& tensor : batch.tensors) total += tensor.nbytes;
  return total;
}

}  // namespace

LocalExecutor::LocalExecutor(const Options& options, executor::ExecutorMetrics& metrics, LoadsChanged loads_changed,
                             WaitsChanged waits_changed)
    : arena_(options.arena),
      memory_available_(options.memory_available),
      metrics_(metrics),
      waits_changed_(std::move(waits_changed)),
      python_({.arena = options.arena,
               .python_path = options.python_path,
               .nice = options.nice,
               .load_changed = [this](const executor::Pipeline& pipeline) { follow_waits(pipeline); },
               .kept = options.kept},
              executor::idle_children_max(options.threads_max),
              [this, told = std::move(loads_changed)](const executor::Pipeline& pipeline, executor::LoadWait wait,
                                                      bool is_loaded) {
                wait == executor::LoadWait::kBegins ? pool_.begin_wait() : pool_.end_wait();
                told(pipeline, is_loaded);
              }),
      pool_(options.threads, options.threads_max, kQueueMax, options.nice),
      read_waits_([this] { return pool_.threads(); },
                  [this](double seconds) { metrics_.count_blocked(ExecutorKind::kNative, seconds); }),
      reading_(pool_) {
  metrics_.set_threads(pool_.threads());
  follow_memory();
}

LocalExecutor::~LocalExecutor() = default;

void LocalExecutor::tick() {
  python_.end_idle_children();
  follow_memory();
}

void LocalExecutor::follow_memory() {
  if (memory_available_) pool_.set_jobs_max(python_.children_max(pool_.threads(), memory_available_()));
}

void LocalExecutor::set_threads(std::size_t threads) {
  pool_.set_threads(threads);
  metrics_.set_threads(pool_.threads());
}

void LocalExecutor::follow_waits(const executor::Pipeline& pipeline) {
  waits_changed_(pipeline);
  pool_.follow_loads();
}

bool LocalExecutor::run(executor::RequestHandle request, CancelFlag cancelled,
                        std::shared_ptr<pipeline::ReadAhead> ahead, std::function<void(BatchOutcome)> finished) {
  metrics_.set_queue_depth(++queued_);
  if (ahead == nullptr) ahead = executor::read_ahead(*request);
  const Job job{std::move(request), std::move(cancelled), ahead, std::move(finished)};
  const auto work = [this, job](executor::ThreadState& thread) {
    if (job.request->pipeline->kind == ExecutorKind::kNative) return run_native(job, thread);
    run_python(job, thread);
  };
  const auto refuse = [this, job] {
    finish(job, executor::to_failure(internal_error("the local executor's queue is full")), 0);
  };
  const bool taken = reading_.submit(read_waits_.counted(ahead), work, refuse, job.request->pipeline->waits);
  if (!taken) --queued_;
  return taken;
}

void LocalExecutor::run_python(const Job& job, executor::ThreadState& thread) {
  const double start_seconds = thread_cpu_seconds();
  BatchOutcome outcome = python_.run(*job.request, thread.stop, [&] { return job.cancelled->load(); });
  double busy_seconds = thread_cpu_seconds() - start_seconds;
  if (auto* batch = std::get_if<Batch>(&outcome)) {
    busy_seconds += batch->busy_seconds;
    if (batch->blocked_seconds) metrics_.count_blocked(ExecutorKind::kPython, *batch->blocked_seconds);
  }
  finish(job, std::move(outcome), busy_seconds);
}

void LocalExecutor::run_native(const Job& job, executor::ThreadState& thread) {
  auto begun = begin_native(*job.request, thread.stop);
  if (!begun.ok()) return finish(job, executor::to_failure(begun.error()), 0);
  const auto slot = std::make_shared<transport::ArenaSlot>(std::move(begun).value());
  const std::size_t samples = job.request->indices.size();
  const std::span bytes(slot->data(), job.request->pipeline->native->schema().batch_bytes(samples));
  const auto make = [job, bytes](std::size_t i, executor::ThreadState& maker) -> Result<void> {
    if (*job.cancelled || maker.stop.stop_requested()) return executor::no_longer_wanted();
    return executor::make_native_sample(*job.request, i, bytes, maker.scratch);
  };
  const auto finished = [this, job, slot, bytes, samples](executor::SharedWork::Done done) {
    BatchOutcome outcome = BatchFailure{};
    if (done.result.ok()) {
      executor::write_labels(*job.request, bytes);
      outcome = Batch{std::move(*slot),
                      executor::native_tensors(*job.request->pipeline, samples),
                      "",
                      0,
                      executor::blocked_seconds(done.costs),
                      executor::costs_by_op(done.costs)};
    } else {
      outcome = executor::to_failure(done.result.error());
    }
    note_waits(*job.request->pipeline, done);
    metrics_.count_ops(done.costs);
    finish(job, std::move(outcome), done.busy_seconds);
  };
  const auto& waits = job.request->pipeline->waits;
  executor::SharedWork::run({samples, make, finished, waits, waits->wants_exact()}, pool_, thread);
}

void LocalExecutor::note_waits(const executor::Pipeline& pipeline, const executor::SharedWork::Done& done) {
  const double blocked_seconds = done.costs.blocked_seconds;
  const bool has_changed = done.queued_seconds
                               ? pipeline.waits->observe(done.busy_seconds, blocked_seconds - *done.queued_seconds)
                               : pipeline.waits->observe_rough(done.busy_seconds, blocked_seconds);
  if (has_changed) follow_waits(pipeline);
}

Result<transport::ArenaSlot> LocalExecutor::begin_native(const BatchRequest& request, const std::stop_token& stop) {
  SLUICE_TRY_VOID(executor::check_indices(request));
  return arena_->allocate(request.pipeline->native->schema().batch_bytes(request.indices.size()), stop);
}

void LocalExecutor::finish(const Job& job, BatchOutcome outcome, double busy_seconds) {
  const ExecutorKind kind = job.request->pipeline->kind;
  auto* batch = std::get_if<Batch>(&outcome);
  if (batch != nullptr) batch->busy_seconds = busy_seconds;
  if (*job.cancelled) {
    metrics_.count_unwanted(kind, busy_seconds);
  } else if (batch != nullptr) {
    metrics_.count_batch(kind, job.request->indices.size(), busy_seconds, batch_bytes(*batch));
  } else {
    metrics_.count_error(kind, busy_seconds);
  }
  metrics_.set_queue_depth(--queued_);
  job.finished(std::move(outcome));
}

}  // namespace sluice::feeder
