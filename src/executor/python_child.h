// One Python child process that runs one pipeline (docs/designs/first-slice.md section 4).
//
// The child maps our arena and writes finished tensors into slots that it asks us for; only control messages cross the
// socket. One pipeline a child, as torch has worker processes for each loader: what user code keeps in globals never
// meets another pipeline's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <variant>

#include "src/executor/batch.h"
#include "src/executor/process.h"
#include "src/transport/frame.h"

namespace sluice::executor {

struct PythonOptions {
  std::shared_ptr<transport::Arena> arena;
  std::string python_path;                   // put before PYTHONPATH; empty: nothing added
  int nice = 0;                              // of the children
  std::chrono::seconds start_time_max{120};  // importing torch on a quarter of a core is slow
  std::chrono::seconds cancel_grace{5};      // how long an unwanted batch may go on before its child is killed
};

// The process is gone or spoke nonsense: nothing can be said about the batch itself.
struct ChildLost {
  std::string how;
};

// Thread safety: none; used by one executing thread at a time.
class PythonChild {
 public:
  // Starts the interpreter and loads the pipeline. BatchFailure carries the exception that the user's code raised
  // while being loaded, or the reason why no interpreter came up (executor_fault).
  static std::variant<std::unique_ptr<PythonChild>, BatchFailure> start(const PythonOptions& options,
                                                                        ProcessSpawner& spawner,
                                                                        PipelineHandle pipeline,
                                                                        const std::stop_token& stop);

  const Pipeline& pipeline() const { return *pipeline_; }
  pid_t pid() const { return process_->pid(); }

  // REQUIRES: request.pipeline is this child's. After ChildLost, or when lost() is true, throw the child away.
  std::variant<Batch, BatchFailure, ChildLost> run(const BatchRequest& request, const std::stop_token& stop,
                                                   const std::function<bool()>& cancelled);
  bool lost() const { return lost_; }
  // Whether its process has ended between two batches.
  bool has_ended() { return process_->has_ended(); }

 private:
  using Outcome = std::variant<Batch, BatchFailure, ChildLost>;

  PythonChild(const PythonOptions& options, PipelineHandle pipeline, std::unique_ptr<Process> process,
              transport::UniqueFd socket);
  std::optional<BatchFailure> load(const std::stop_token& stop);
  Result<transport::Frame> next_frame(const std::stop_token& stop, const std::function<bool()>& cancelled);
  Result<void> answer_alloc(const transport::AllocMessage& message, const std::stop_token& stop,
                            transport::ArenaSlot& slot);
  Outcome finish(transport::DoneMessage message, std::string structure, transport::ArenaSlot slot);
  ChildLost lose(const Error& error);

  const PythonOptions& options_;
  const PipelineHandle pipeline_;
  std::unique_ptr<Process> process_;
  transport::FrameSocket socket_;
  std::uint64_t next_id_ = 1;
  bool lost_ = false;
};

}  // namespace sluice::executor
