// One Python process that runs the batches of one pipeline (docs/designs/protocols.md section 4).
//
// The child maps our arena and writes finished tensors into slots that it asks us for; only control messages cross the
// socket. One pipeline a child, as torch has worker processes for each loader: what user code keeps in globals never
// meets another pipeline's.
#pragma once

#include <functional>
#include <variant>

#include "src/executor/python_interpreter.h"

namespace sluice::executor {

// The process is gone or spoke nonsense: nothing can be said about the batch itself.
struct ChildLost {
  std::string how;
};

// Thread safety: none; used by one executing thread at a time.
class PythonChild {
 public:
  // REQUIRES: the interpreter has loaded the pipeline under this number.
  PythonChild(const PythonOptions& options, const PipelineHandle& pipeline, std::uint64_t number,
              PythonInterpreter interpreter);

  // Whether it has loaded the same bytes with the same interpreter, for the same owner.
  bool runs(const Pipeline& pipeline) const {
    return fingerprint_ == pipeline.fingerprint && python_ == pipeline.python && owner_ == pipeline.owner;
  }
  // Whether no other part of the program has its pipeline any more.
  bool is_orphan() const { return pipeline_.expired(); }
  // From now on it belongs to this one. REQUIRES: runs(*pipeline).
  void adopt(const PipelineHandle& pipeline) { pipeline_ = pipeline; }
  pid_t pid() const { return interpreter_.process->pid(); }

  // REQUIRES: runs(*request.pipeline). After ChildLost, or when lost() is true, throw the child away.
  std::variant<Batch, BatchFailure, ChildLost> run(const BatchRequest& request, const std::stop_token& stop,
                                                   const std::function<bool()>& cancelled);
  bool lost() const { return lost_; }
  // Whether its process has ended between two batches.
  bool has_ended() { return interpreter_.process->has_ended(); }

 private:
  using Outcome = std::variant<Batch, BatchFailure, ChildLost>;

  // Tells the child the state in which the request wants its pipeline, unless it is in that one.
  Result<void> send_state(const BatchRequest& request);
  Result<transport::Frame> next_frame(const std::stop_token& stop, const std::function<bool()>& cancelled);
  Result<void> answer_alloc(const transport::AllocMessage& message, const std::stop_token& stop,
                            transport::ArenaSlot& slot);
  Outcome finish(transport::DoneMessage message, std::string structure, transport::ArenaSlot slot);
  ChildLost lose(const Error& error);

  const PythonOptions& options_;
  std::weak_ptr<const Pipeline> pipeline_;
  const std::string fingerprint_;
  const std::string python_;
  const std::uint64_t owner_;
  const std::uint64_t number_;      // by which the child knows its pipeline
  std::uint64_t state_number_ = 0;  // 0: as it was loaded
  PythonInterpreter interpreter_;
  std::uint64_t next_id_ = 1;
  bool lost_ = false;
};

}  // namespace sluice::executor
