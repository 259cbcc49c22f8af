// A worker: batches for every peer with a certificate of the job, on threads sized by the pod's CPU.
//
// Stateless: its knowledge of a feeder ends with the feeder's stream. Each stream may hold `credits` requests, and more
// of pipelines whose batches mostly wait; what is beyond that is refused. Results are sent as they are made, in chunks
// out of an arena. When a feeder does not read, its chunks stay in the arena, and the threads that work for it wait.
// Draining: every stream is told, nothing new is accepted, and a stream ends when its last answer has been sent.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "src/executor/executor_metrics.h"
#include "src/executor/python_executor.h"
#include "src/executor/read_waits.h"
#include "src/executor/reading_jobs.h"
#include "src/executor/thread_pool.h"
#include "src/transport/remote_server.h"

namespace sluice::worker {

// Thread safety: all methods may be called from any thread; the destructor after the RemoteServer that calls it.
class WorkerService final : public transport::RemoteServerHandler {
 public:
  struct Options {
    std::size_t threads = 1;
    std::shared_ptr<transport::Arena> arena;
    std::string python_path;
    std::shared_ptr<const pipeline::FileReader> files;  // what native pipelines read through; null: the file system
    std::shared_ptr<executor::KeptCalls> kept;          // results of functions; null: none are kept
    std::function<std::optional<std::size_t>()> memory_available;  // bytes; null: not known
  };

  static constexpr std::size_t kStreamsMax = 256;
  static constexpr std::size_t kPipelinesPerStreamMax = 256;
  static constexpr std::size_t kStatesPerStreamMax = 1024;
  static constexpr std::size_t kPassesPerStreamMax = 64;

  WorkerService(const Options& options, executor::ExecutorMetrics& metrics);
  ~WorkerService() override;

  // Ends Python children that have idled too long, and follows the memory. Call it every second.
  void tick();

  void drain();
  bool draining() const;
  // True if the last stream ended before the deadline.
  bool wait_until_idle(std::chrono::steady_clock::time_point deadline);

  // Since when no feeder has been connected; nullopt: one is.
  std::optional<std::chrono::steady_clock::time_point> unused_since() const;

  void opened(std::shared_ptr<transport::RemoteStream> stream) override;
  void received(const std::shared_ptr<transport::RemoteStream>& stream, v1::Header header,
                transport::Payload payload) override;
  void closed(const std::shared_ptr<transport::RemoteStream>& stream) override;

 private:
  using Cancelled = std::shared_ptr<std::atomic<bool>>;
  struct ArrivingPipeline {
    v1::Pipeline message;
    transport::MemoryWriter memory;
  };
  struct Feeder {
    std::shared_ptr<transport::RemoteStream> stream;
    std::map<std::uint64_t, executor::PipelineHandle> pipelines;
    std::map<std::uint64_t, executor::StateHandle> states;
    std::map<std::uint64_t, std::shared_ptr<executor::VirtualWorkers>> passes;
    std::optional<ArrivingPipeline> arriving;
    std::map<std::uint64_t, Cancelled> running;  // what counts against the credits
    std::size_t unfinished = 0;                  // running, or the last message is just being queued
    bool ending = false;                         // drained: the stream ends when everything has been sent

    // Of a pass; null for pass 0.
    std::shared_ptr<executor::VirtualWorkers> virtual_workers(std::uint64_t pass, const executor::Pipeline& pipeline) {
      if (pass == 0) return nullptr;
      if (passes.size() >= kPassesPerStreamMax && !passes.contains(pass)) passes.erase(passes.begin());  // the oldest
      auto& known = passes[pass];
      if (known == nullptr) known = std::make_shared<executor::VirtualWorkers>(pipeline.num_workers, true, pass);
      return known;
    }
  };
  struct Task {
    std::shared_ptr<transport::RemoteStream> stream;
    std::uint64_t id = 0;
    executor::RequestHandle request;
    Cancelled cancelled;
    std::shared_ptr<pipeline::ReadAhead> ahead;  // what is being read for it
  };

  void follow_memory();
  void receive_pipeline(const std::shared_ptr<transport::RemoteStream>& stream, const v1::Pipeline& message,
                        const transport::Payload& payload);
  void receive_pipeline_part(const std::shared_ptr<transport::RemoteStream>& stream, std::uint64_t id,
                             const transport::Payload& payload);
  void add_piece(const std::shared_ptr<transport::RemoteStream>& stream, ArrivingPipeline arriving,
                 const transport::Payload& payload);
  void use_pipeline(const std::shared_ptr<transport::RemoteStream>& stream, const v1::Pipeline& message,
                    transport::SealedMemoryHandle blob);
  // Answers when a Python child for every thread has loaded the pipeline.
  void warm_up(const std::shared_ptr<transport::RemoteStream>& stream, std::uint64_t id,
               const executor::PipelineHandle& pipeline);
  // REQUIRES: one has loaded it, so that the others need not wait for it on all threads.
  void warm_all(const std::shared_ptr<transport::RemoteStream>& stream, std::uint64_t id,
                const executor::PipelineHandle& pipeline);
  void receive_state(const std::shared_ptr<transport::RemoteStream>& stream, std::uint64_t id,
                     const transport::Payload& payload);
  void receive_forget(const std::shared_ptr<transport::RemoteStream>& stream, const v1::Forget& message);
  void receive_request(const std::shared_ptr<transport::RemoteStream>& stream, const v1::Request& message);
  void receive_cancel(const std::shared_ptr<transport::RemoteStream>& stream, std::uint64_t id);
  void run(const Task& task, executor::ThreadState& thread);
  void run_native(const Task& task, executor::ThreadState& thread);
  void run_python(const Task& task, executor::ThreadState& thread);
  // Just before the answer's last message: the feeder may send the next request the moment it has read it.
  void free_credit(const Task& task);
  // After the answer's last message; it took so many CPU seconds of the thread.
  void finish(const Task& task, double thread_seconds);
  static void end_if_drained(Feeder& feeder);

  const std::size_t credits_;
  const std::shared_ptr<transport::Arena> arena_;
  const std::shared_ptr<const pipeline::FileReader> files_;
  const std::function<std::optional<std::size_t>()> memory_available_;
  executor::ExecutorMetrics& metrics_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool draining_ = false;
  std::map<const transport::RemoteStream*, Feeder> feeders_;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();  // while there is no feeder
  std::size_t running_ = 0;
  std::uint64_t next_pipeline_ = 1;
  std::uint64_t next_state_ = 1;
  const double started_cpu_seconds_;  // the process's own before it served a feeder
  double executing_seconds_ = 0;      // of the pool's threads

  executor::PythonExecutor python_;
  executor::ThreadPool pool_;  // its threads use the rest
  executor::ReadWaits read_waits_;
  executor::ReadingJobs reading_;  // last: they begin on the pool
};

}  // namespace sluice::worker
