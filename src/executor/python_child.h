// One Python process that runs the batches of one pipeline (docs/designs/protocols.md section 4).
//
// The child maps our arena and writes finished tensors into slots that it asks us for; only control messages cross the
// socket. One pipeline a child, as torch has worker processes for each loader: what user code keeps in globals never
// meets another pipeline's. While a batch takes long, its process is watched: a data set that sleeps for seconds is
// known before its first batch has come.
#pragma once

#include <functional>
#include <variant>

#include "src/executor/child_calls.h"
#include "src/executor/held_files.h"
#include "src/executor/process_times.h"
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
  // Whether it may still have what it read for another pass than that of this seed, such as a table that the data set
  // keeps. torch's workers end with their pass, and those of the next one read anew. Workers that persist keep the
  // pass's seed.
  bool is_of_another_pass(std::uint64_t seed) const { return has_read_ && pass_ != seed; }
  std::uint64_t pass() const { return pass_; }
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

  Outcome make(const BatchRequest& request, const std::stop_token& stop, const std::function<bool()>& cancelled);
  // Tells the child the state in which the request wants its pipeline, unless it is in that one.
  Result<void> send_state(const BatchRequest& request);
  Result<transport::Frame> next_frame(const Pipeline& pipeline, const std::stop_token& stop,
                                      const std::function<bool()>& cancelled);
  // Tells the pipeline what its batch in the making has done since the last look.
  void look(const Pipeline& pipeline);
  void tell(const Pipeline& pipeline, double busy_seconds, double blocked_seconds);
  Result<void> answer_alloc(const transport::AllocMessage& message, const std::stop_token& stop,
                            transport::ArenaSlot& slot);
  Outcome finish(const Pipeline& pipeline, transport::DoneMessage message, std::string structure,
                 transport::ArenaSlot slot);
  ChildLost lose(const Error& error);

  const PythonOptions& options_;
  std::weak_ptr<const Pipeline> pipeline_;
  const std::string fingerprint_;
  const std::string python_;
  const std::uint64_t owner_;
  const std::uint64_t number_;      // by which the child knows its pipeline
  HeldFiles held_files_;            // since before its first batch
  std::uint64_t state_number_ = 0;  // 0: as it was loaded
  PythonInterpreter interpreter_;
  ChildCalls calls_;
  std::uint64_t next_id_ = 1;
  bool lost_ = false;
  bool has_read_ = false;   // for some batch
  std::uint64_t pass_ = 0;  // the seed of the pass of its last batch
  // Of the batch in the making:
  bool is_watched_ = false;
  std::optional<ProcessTimes> seen_;
  double told_busy_seconds_ = 0;
  double told_blocked_seconds_ = 0;
};

}  // namespace sluice::executor
