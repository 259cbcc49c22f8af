// Runs batches of Python pipelines in child processes, as many at once as threads call run().
//
// Idle children are kept for the next batch of their pipeline, the least recently used given up beyond the bound. One
// that dies while it idles (the kernel was short of memory) is replaced before anybody notices. A child that dies with
// a batch is replaced and the batch tried once more; if it dies again, the failure names the signal or the exit code. A
// pipeline that could not be loaded is not tried again for a while: each attempt costs an interpreter.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "src/executor/python_child.h"

namespace sluice::executor {

// Thread safety: run() may be called from any thread.
class PythonExecutor {
 public:
  // Keeps at most `children_max` idle children beside those that run() is using.
  PythonExecutor(PythonOptions options, std::size_t children_max);
  ~PythonExecutor();

  // Blocks for the batch. `stop` kills the child in use; `cancelled` turns true when nobody wants the batch any more.
  std::variant<Batch, BatchFailure> run(const BatchRequest& request, const std::stop_token& stop,
                                        const std::function<bool()>& cancelled);

  // Starts a child for the pipeline, if none is idle, so that the first batch need not wait for an interpreter.
  std::optional<BatchFailure> warm(const PipelineHandle& pipeline, const std::stop_token& stop);

  std::size_t idle_children() const;

 private:
  struct LoadFailure {
    BatchFailure failure;
    std::chrono::steady_clock::time_point until;
  };

  std::variant<std::unique_ptr<PythonChild>, BatchFailure> take_child(const PipelineHandle& pipeline,
                                                                      const std::stop_token& stop);
  void give_back(std::unique_ptr<PythonChild> child);

  const PythonOptions options_;
  const std::size_t children_max_;
  ProcessSpawner spawner_;  // before the children: they must be gone when its thread ends
  mutable std::mutex mutex_;
  std::list<std::unique_ptr<PythonChild>> idle_;      // the last used first
  std::map<std::string, LoadFailure> load_failures_;  // by fingerprint
};

}  // namespace sluice::executor
