// The feeder's own executor: batches on threads beside the trainer, straight into the arena.
//
// All free threads make a native batch together; one thread, or its Python child, makes a Python batch.
// Where there are remote workers, its threads and children have a lower priority than the rest of the feeder. On a
// quarter of a core, receiving from the workers must not wait behind computing. Thread safety: all methods may be
// called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <variant>

#include "src/executor/executor_metrics.h"
#include "src/executor/python_executor.h"
#include "src/executor/read_waits.h"
#include "src/executor/reading_jobs.h"
#include "src/executor/shared_work.h"
#include "src/executor/thread_pool.h"

namespace sluice::feeder {

using BatchOutcome = std::variant<executor::Batch, executor::BatchFailure>;

// Shared by the feeder, which sets it, and the request's executor.
using CancelFlag = std::shared_ptr<std::atomic<bool>>;

class LocalExecutor {
 public:
  struct Options {
    std::size_t threads = 1;
    std::size_t threads_max = 1;
    std::shared_ptr<transport::Arena> arena;
    std::string python_path;
    int nice = 0;
    std::shared_ptr<executor::KeptCalls> kept;                     // results of functions; null: none are kept
    std::function<std::optional<std::size_t>()> memory_available;  // bytes; null: not known
  };

  // Told on an executing thread when loading() has changed, or may have: by this pipeline, which is loaded now or not.
  using LoadsChanged = std::function<void(const executor::Pipeline& pipeline, bool is_loaded)>;
  // Told on an executing thread when the pipeline's batches wait for another share of their time than before.
  using WaitsChanged = std::function<void(const executor::Pipeline& pipeline)>;

  LocalExecutor(const Options& options, executor::ExecutorMetrics& metrics, LoadsChanged loads_changed,
                WaitsChanged waits_changed);
  // Stops waiting for memory and kills Python children; jobs that had not started never call `finished`.
  ~LocalExecutor();

  // `finished` runs once, on one of the executing threads. False if the queue is full: it will not run. `ahead`: what
  // is being read for it; null: nothing yet. A batch begins when that has come.
  bool run(executor::RequestHandle request, CancelFlag cancelled, std::shared_ptr<pipeline::ReadAhead> ahead,
           std::function<void(BatchOutcome)> finished);

  void set_threads(std::size_t threads);
  // As PythonExecutor::end_children(). Blocks.
  void end_children(const executor::Pipeline& pipeline, const std::weak_ptr<const executor::VirtualWorkers>& pass) {
    python_.end_children(pipeline, pass);
  }
  // Ends Python children that have idled too long, and follows the memory. Call it every second.
  void tick();
  std::size_t threads() const { return pool_.threads(); }
  // How many requests wait for a pipeline to be loaded, and take no thread from others meanwhile.
  std::size_t loading() const { return pool_.waiting(); }
  // How many requests run at once at most, however little they compute.
  std::size_t requests_max() const { return pool_.jobs_max(); }

 private:
  struct Job {
    executor::RequestHandle request;
    CancelFlag cancelled;
    std::shared_ptr<pipeline::ReadAhead> ahead;
    std::function<void(BatchOutcome)> finished;
  };

  void follow_memory();
  // After the pipeline's `waits` have changed.
  void follow_waits(const executor::Pipeline& pipeline);
  void run_python(const Job& job, executor::ThreadState& thread);
  void run_native(const Job& job, executor::ThreadState& thread);
  void note_waits(const executor::Pipeline& pipeline, const executor::SharedWork::Done& done);
  Result<transport::ArenaSlot> begin_native(const executor::BatchRequest& request, const std::stop_token& stop);
  // `busy_seconds`: CPU, also where the batch knows them.
  void finish(const Job& job, BatchOutcome outcome, double busy_seconds);

  const std::shared_ptr<transport::Arena> arena_;
  const std::function<std::optional<std::size_t>()> memory_available_;
  executor::ExecutorMetrics& metrics_;
  const WaitsChanged waits_changed_;
  std::atomic<std::size_t> queued_ = 0;
  executor::PythonExecutor python_;
  executor::ThreadPool pool_;  // its threads use the rest
  executor::ReadWaits read_waits_;
  executor::ReadingJobs reading_;  // last: they begin on the pool
};

}  // namespace sluice::feeder
