// Where Python children come from: a tree of forks.
//
//   interpreter that has imported torch > the same with one pipeline loaded > its children, which run batches
//
// So an interpreter's start is paid once, and a data set is unpickled and in memory once. The number of children does
// not matter, nor how often they are replaced. A pipeline whose libraries have started threads cannot be forked. Each
// of its children loads it, and the log says so.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>

#include "src/executor/python_child.h"
#include "src/executor/python_zygote.h"

namespace sluice::executor {

// Thread safety: all methods may be called from any thread. Children must be gone when it ends.
class PythonZygotes {
 public:
  explicit PythonZygotes(const PythonOptions& options) : options_(options) {}

  // A child that has loaded the pipeline. BatchFailure: as of load_pipeline(), or why no interpreter came up.
  std::variant<std::unique_ptr<PythonChild>, BatchFailure> start_child(const PipelineHandle& pipeline,
                                                                       const std::stop_token& stop);

  // Whether a process has loaded it, and still may be there.
  bool has_loaded(const Pipeline& pipeline);

  // Lets go of those that nothing was forked from for as long as a child may idle. Call it every second.
  void end_idle();

 private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<std::string, std::string>;  // interpreter and fingerprint; an empty one: nothing is loaded
  struct Entry {
    bool starting = true;                  // by one thread; the others wait for it
    std::shared_ptr<PythonZygote> zygote;  // null: it cannot be forked
    std::uint64_t number = 0;              // by which the zygote knows its pipeline
    std::weak_ptr<const Pipeline> pipeline;
    Clock::time_point used;
  };
  using ChildOrFailure = std::variant<std::unique_ptr<PythonChild>, BatchFailure>;

  // The entry, once it is made, or as it is when `stop` ends the wait. nullopt: the caller has to make it, and all
  // others wait for that.
  std::optional<Entry> known(const Key& key, const PipelineHandle& pipeline, const std::stop_token& stop);
  void remember(const Key& key, std::shared_ptr<PythonZygote> zygote, const PipelineHandle& pipeline);
  void forget(const Key& key, const std::shared_ptr<PythonZygote>& zygote);

  ChildOrFailure load_first(const Key& key, const PipelineHandle& pipeline, const std::stop_token& stop);
  ChildOrFailure load_alone(const PipelineHandle& pipeline, const std::stop_token& stop);
  std::unique_ptr<PythonChild> child_of(const PipelineHandle& pipeline, std::uint64_t number,
                                        PythonInterpreter interpreter);
  // One that has imported torch and loaded nothing.
  Result<PythonInterpreter> fresh_interpreter(const std::string& python, const std::stop_token& stop);

  const PythonOptions& options_;
  ProcessSpawner spawner_;  // before the zygotes: they must be gone when its thread ends
  std::mutex mutex_;
  std::condition_variable_any started_;
  std::map<Key, Entry> entries_;
};

}  // namespace sluice::executor
