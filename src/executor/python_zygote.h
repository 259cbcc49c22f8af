// A Python interpreter that forks others and never runs a batch itself.
//
// What it has imported and loaded, its forks share with it until they write to it. It has one thread, which is what
// makes a fork safe; with more of them it refuses. Only it can reap its forks, so it does that when it is asked. They
// die with it, as it dies with this process.
#pragma once

#include <mutex>

#include "src/executor/python_interpreter.h"

namespace sluice::executor {

// Thread safety: fork() and reap() may be called from any thread. What it has forked keeps it alive.
class PythonZygote : public std::enable_shared_from_this<PythonZygote> {
 public:
  explicit PythonZygote(PythonInterpreter interpreter) : interpreter_(std::move(interpreter)) {}

  // A copy of the interpreter as it is now. Errors: ResourceExhausted with the reason why it will not fork, in which
  // case it still is what it was; anything else: it has ended.
  Result<PythonInterpreter> fork(std::chrono::seconds time_max, const std::stop_token& stop);

  // How a process that it has forked, and that is not running any more, has ended.
  std::string reap(pid_t pid);

  // For an interpreter that refuses to fork: it can still run batches. REQUIRES: nothing was forked from it.
  PythonInterpreter release() && { return std::move(interpreter_); }

 private:
  Result<transport::ChildMessage> exchange(const std::string& json, std::chrono::seconds time_max,
                                           const std::stop_token& stop, int passed_fd = -1);

  std::mutex mutex_;
  PythonInterpreter interpreter_;
};

}  // namespace sluice::executor
