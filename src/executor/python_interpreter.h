// A running `python -m sluice.executor` and this process's end of its socket (docs/designs/protocols.md section 4).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "src/executor/batch.h"
#include "src/executor/kept_calls.h"
#include "src/executor/process.h"
#include "src/transport/frame.h"

namespace sluice::executor {

struct PythonOptions {
  std::shared_ptr<transport::Arena> arena;
  std::string python_path;                                           // put before PYTHONPATH; empty: nothing added
  int nice = 0;                                                      // of the children
  std::chrono::milliseconds idle_time_max{std::chrono::minutes(2)};  // a child idles so long before it is ended
  std::chrono::milliseconds orphan_time_max{
      std::chrono::seconds(5)};              // and so long if its pipeline is forgotten, or its pass over
  std::chrono::seconds start_time_max{120};  // importing torch on a quarter of a core is slow
  std::chrono::seconds cancel_grace{5};      // how long an unwanted batch may go on before its child is killed
  std::function<void(const Pipeline& pipeline)>
      load_changed;                 // of its `waits`; on any thread; null: it is told to none
  std::shared_ptr<KeptCalls> kept;  // results of marked functions; null: none are kept
};

// Thread safety: none.
struct PythonInterpreter {
  std::unique_ptr<Process> process;
  transport::FrameSocket socket;
};

// Two ends of a connection between this process and an interpreter.
struct SocketPair {
  transport::UniqueFd ours;
  transport::UniqueFd theirs;
};
Result<SocketPair> connected_sockets();

// Errors: those of ProcessSpawner::spawn. Nothing is known yet of whether it comes up: load_pipeline() or a fork tells.
Result<PythonInterpreter> spawn_interpreter(const PythonOptions& options, ProcessSpawner& spawner,
                                            const std::string& python);

// BatchFailure carries the exception that the user's code raised while being loaded, or why there was no answer
// (executor_fault); the interpreter has ended then.
std::optional<BatchFailure> load_pipeline(PythonInterpreter& interpreter, const Pipeline& pipeline,
                                          const PythonOptions& options, const std::stop_token& stop);

// Ends an interpreter whose socket failed with `error`, and says what became of it.
std::string give_up(Process& process, const Error& error);

// This executor's fault, not the batch's: the client may make it itself.
BatchFailure executor_failure(std::string message);

}  // namespace sluice::executor
