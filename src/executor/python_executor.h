// Runs batches of Python pipelines in child processes, as many at once as threads call run().
//
// Idle children are kept for the next batch of their pipeline until they have idled too long: loaders may take turns.
// Only where memory needs a bound, the least recently used is given up beyond it. One
// that dies while it idles (the kernel was short of memory) is replaced before the next batch. A child that dies with a
// batch is replaced, and the batch is tried once more. If it dies again, the failure names the signal or the exit code.
// A virtual worker has a child of its own, which ends with its pass. One that is lost is rebuilt in another child.
// A pipeline that could not be loaded is not tried again for a while: each attempt costs an interpreter.
// How long a load takes is up to the user's code, so the owner of the threads is told when one begins to wait for it.
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>

#include "src/executor/python_zygotes.h"

namespace sluice::executor {

// Room for three loaders that take turns on every thread, and for a few more where there are few threads.
constexpr std::size_t idle_children_max(std::size_t threads) { return 3 * threads + 5; }

// How many children may work at once, where their batches mostly wait: those that are there, and as many more as half
// of the memory that is available holds. Both figures of memory may be unknown. At least `threads`.
std::size_t children_fitting(std::size_t children, std::size_t threads, std::optional<std::size_t> available_bytes,
                             std::optional<std::size_t> child_bytes);

enum class LoadWait { kBegins, kEnds };
// Called by the thread that waits for a new child. `is_loaded`: a process has loaded the pipeline by now.
using LoadObserver = std::function<void(const Pipeline& pipeline, LoadWait wait, bool is_loaded)>;

// Thread safety: run() may be called from any thread.
class PythonExecutor {
 public:
  // Keeps at most `children_max` idle children beside those that run() is using, or as many as it has used at once.
  PythonExecutor(PythonOptions options, std::size_t children_max, LoadObserver observer = nullptr);
  ~PythonExecutor();

  // Blocks for the batch. `stop` kills the child in use; `cancelled` turns true when the batch is no longer wanted.
  std::variant<Batch, BatchFailure> run(const BatchRequest& request, const std::stop_token& stop,
                                        const std::function<bool()>& cancelled);

  // Makes a child for the pipeline, if none is idle, so that the first batch need not wait for an interpreter.
  std::optional<BatchFailure> warm(const PipelineHandle& pipeline, const std::stop_token& stop);

  // Ends the children of a pipeline that is not used at present, and waits for those that still run a batch of it, or
  // are of `pass`: for five seconds at most. Its next batch forks another child.
  void end_children(const Pipeline& pipeline, const std::weak_ptr<const VirtualWorkers>& pass);

  // Ends the children, and what they were forked from, that have idled too long. Call it every second.
  void end_idle_children();

  std::size_t idle_children() const;

  // As children_fitting(), of this one's children.
  std::size_t children_max(std::size_t threads, std::optional<std::size_t> available_bytes) const;

 private:
  struct IdleChild {
    std::unique_ptr<PythonChild> child;
    std::chrono::steady_clock::time_point since;
  };
  // Of one pass, by virtual worker: null while it runs a batch, or is lost.
  using OwnChildren = std::vector<std::unique_ptr<PythonChild>>;
  using Passes = std::map<std::weak_ptr<const VirtualWorkers>, OwnChildren, std::owner_less<>>;
  // A batch in the making.
  class Running {
   public:
    Running(PythonExecutor& executor, const Pipeline& pipeline);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    PythonExecutor& executor_;
    std::multiset<const Pipeline*>::iterator place_;
  };
  struct LoadFailure {
    BatchFailure failure;
    std::chrono::steady_clock::time_point until;
  };

  std::variant<Batch, BatchFailure> try_twice(const BatchRequest& request, const std::stop_token& stop,
                                              const std::function<bool()>& cancelled);
  // `pass`: the seed of that for which it makes a batch; none: of any.
  std::variant<std::unique_ptr<PythonChild>, BatchFailure> take_child(const PipelineHandle& pipeline,
                                                                      std::optional<std::uint64_t> pass,
                                                                      const std::stop_token& stop);
  std::variant<std::unique_ptr<PythonChild>, BatchFailure> take_child(const BatchRequest& request,
                                                                      const std::stop_token& stop);
  std::variant<std::unique_ptr<PythonChild>, BatchFailure> start_child(const PipelineHandle& pipeline,
                                                                       const std::stop_token& stop);
  void tell(const Pipeline& pipeline, LoadWait wait);
  void give_back(std::unique_ptr<PythonChild> child);
  // REQUIRES: the child's process still is there.
  void measure(const PythonChild& child);
  void give_back(const BatchRequest& request, std::unique_ptr<PythonChild> child);
  // Takes out the children of passes that are over. REQUIRES: the lock is held.
  std::vector<OwnChildren> extract_ended_passes();

  const PythonOptions options_;
  const std::size_t children_max_;
  const LoadObserver observer_;
  PythonZygotes zygotes_;  // before the children: they must be gone when it ends
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::multiset<const Pipeline*> running_;  // of each batch
  std::size_t most_running_ = 0;            // so far
  std::list<IdleChild> idle_;               // the last used first
  Passes passes_;
  std::map<std::string, LoadFailure> load_failures_;  // by fingerprint
  std::optional<std::size_t> child_bytes_;            // memory that one has for itself, as seen last
  std::chrono::steady_clock::time_point measured_at_;
};

}  // namespace sluice::executor
