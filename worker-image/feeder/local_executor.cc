#include "worker-image/feeder/local_executor.h"

#include "src/base/clock.h"

namespace sluice::feeder {
namespace {

using executor::Batch;
using executor::BatchRequest;
using executor::ExecutorKind;

constexpr std::size_t kQueueMax = 8192;

std::size_t batch_bytes(const Batch& batch) {
  std::size_t total = 0;
  for (const auto& tensor : batch.tensors) total += tensor.nbytes;
  return total;
}

}  // namespace

LocalExecutor::LocalExecutor(const Options& options, executor::ExecutorMetrics& metrics, LoadsChanged loads_changed)
    : arena_(options.arena),
      metrics_(metrics),
      python_({.arena = options.arena, .python_path = options.python_path, .nice = options.nice},
              executor::idle_children_max(options.threads_max),
              [this, told = std::move(loads_changed)](const executor::Pipeline& pipeline, executor::LoadWait wait,
                                                      bool is_loaded) {
                wait == executor::LoadWait::kBegins ? pool_.begin_wait() : pool_.end_wait();
                told(pipeline, is_loaded);
              }),
      pool_(options.threads, options.threads_max, kQueueMax, options.nice) {
  metrics_.set_threads(pool_.threads());
}

LocalExecutor::~LocalExecutor() = default;

void LocalExecutor::set_threads(std::size_t threads) {
  pool_.set_threads(threads);
  metrics_.set_threads(pool_.threads());
}

bool LocalExecutor::run(executor::RequestHandle request, CancelFlag cancelled,
                        std::function<void(BatchOutcome)> finished) {
  metrics_.set_queue_depth(++queued_);
  const bool taken = pool_.submit([this, request = std::move(request), cancelled = std::move(cancelled),
                                   finished = std::move(finished)](executor::ThreadState& thread) {
    const double start_seconds = thread_cpu_seconds();
    BatchOutcome outcome = execute(*request, *cancelled, thread);
    double busy_seconds = thread_cpu_seconds() - start_seconds;
    auto* batch = std::get_if<Batch>(&outcome);
    if (batch != nullptr) busy_seconds = batch->busy_seconds += busy_seconds;
    if (batch != nullptr && batch->blocked_seconds && request->pipeline->kind == ExecutorKind::kPython)
      metrics_.count_blocked(request->pipeline->kind, *batch->blocked_seconds);
    if (*cancelled) {
      metrics_.count_unwanted(request->pipeline->kind, busy_seconds);
    } else if (batch != nullptr) {
      metrics_.count_batch(request->pipeline->kind, request->indices.size(), batch->busy_seconds, batch_bytes(*batch));
    } else {
      metrics_.count_error(request->pipeline->kind, busy_seconds);
    }
    metrics_.count_ops(thread.scratch.costs);
    metrics_.set_queue_depth(--queued_);
    finished(std::move(outcome));
  });
  if (!taken) --queued_;
  return taken;
}

BatchOutcome LocalExecutor::execute(const BatchRequest& request, const std::atomic<bool>& cancelled,
                                    executor::ThreadState& thread) {
  if (request.pipeline->kind == ExecutorKind::kNative) return execute_native(request, cancelled, thread);
  return python_.run(request, thread.stop, [&] { return cancelled.load(); });
}

BatchOutcome LocalExecutor::execute_native(const BatchRequest& request, const std::atomic<bool>& cancelled,
                                           executor::ThreadState& thread) {
  const std::size_t bytes = request.pipeline->native->schema().batch_bytes(request.indices.size());
  auto slot = arena_->allocate(bytes, thread.stop);
  if (!slot.ok()) return executor::to_failure(slot.error());
  const auto done = executor::run_native_into(request, {slot->data(), bytes}, thread.scratch,
                                              [&] { return cancelled.load() || thread.stop.stop_requested(); });
  if (!done.ok()) return executor::to_failure(done.error());
  const pipeline::OpCosts& costs = thread.scratch.costs;
  return Batch{std::move(slot).value(),
               executor::native_tensors(*request.pipeline, request.indices.size()),
               "",
               0,
               executor::blocked_seconds(costs),
               executor::costs_by_op(costs)};
}

}  // namespace sluice::feeder
