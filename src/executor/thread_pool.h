// The threads that execute batches.
//
// Callers count credits and so never submit more jobs than fit; the queue is bounded all the same. A job that is
// running may invite more threads. A job that waits for another process may say so: another thread works meanwhile.
// Jobs of a pipeline whose batches mostly wait (wait_share.h) take no thread from the others: as many of them run
// beside as fill `threads` by themselves. set_threads() follows a CPU quota that changes at run time. Surplus threads
// finish their job and then idle. Thread safety: all methods may be called from any thread, except that the destructor
// waits for running jobs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/executor/native_batch.h"
#include "src/executor/wait_share.h"

namespace sluice::executor {

// The resources of a thread, for its jobs.
struct ThreadState {
  NativeScratch scratch;
  std::stop_token stop;  // requested when the pool is being destroyed
};

class ThreadPool {
 public:
  using Job = std::function<void(ThreadState&)>;
  using Waits = std::shared_ptr<const WaitShare>;  // null: the job computes

  // Starts `threads`; more, up to `threads_max`, when set_threads() asks for them. `nice` lowers their priority against
  // the other threads of this process (0: as they are).
  ThreadPool(std::size_t threads, std::size_t threads_max, std::size_t queue_max, int nice);
  ~ThreadPool();

  // So many jobs beside those that work have a thread while they wait: all threads' for one thing, and a few more.
  static constexpr std::size_t waiting_max(std::size_t threads_max) { return threads_max + 4; }

  // However little they compute, at most so many jobs run beside as many as there may be threads.
  static constexpr std::size_t kJobsBesideMax = 256;

  // False if the queue is full or the pool is ending: the job was not taken.
  bool submit(Job job, const Waits& waits = nullptr);
  // So many threads help a running job as soon as they are free, before any job that waits. REQUIRES: called by that
  // job, once, with fewer than threads_for() says.
  void invite(std::size_t threads, const Job& help, const Waits& waits = nullptr);

  // REQUIRES: 1 <= threads; more than threads_max counts as threads_max.
  void set_threads(std::size_t threads);
  // At most so many jobs run at once from now on, however little they compute; fewer than threads() count as that.
  void set_jobs_max(std::size_t jobs);
  std::size_t jobs_max() const;
  // The load of some jobs has changed.
  void follow_loads();
  std::size_t threads() const;
  // How many jobs of the pipeline may run at once if no others do.
  std::size_t threads_for(const Waits& waits) const;
  std::size_t threads_max() const { return threads_max_; }
  std::size_t queued() const;

  // From here on the calling job waits, and does not count as one of `threads`. REQUIRES: a job of this pool calls
  // them, in turns.
  void begin_wait();
  void end_wait();
  // How many jobs wait and do not keep others from a thread: waiting_max() at the most.
  std::size_t waiting() const;

 private:
  struct Entry {
    std::uint64_t number = 0;  // grows with time
    Job job;
    Waits waits;
  };
  using Queue = std::map<Waits, std::deque<Entry>>;  // those of equal `waits` in their order; none is empty

  std::size_t waiting_locked() const { return std::min(waiting_, waiting_max(threads_max_)); }
  bool may_begin_locked(const Waits& waits) const;
  // Those of which one may begin, with the oldest entry in front; its end: there is none.
  Queue::iterator next_locked(Queue& queue);
  // Whether a job waits for a thread and may have one.
  bool has_work_locked();
  void start_missing_locked();
  void begin_locked(const WaitShare* waits);
  void end_locked(const WaitShare* waits);
  void run(const std::stop_token& stop);
  // REQUIRES: has_work_locked().
  Entry take_locked();

  const std::size_t threads_max_;
  const std::size_t queue_max_;
  const int nice_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Queue queue_;
  Queue invitations_;
  std::size_t queued_ = 0;
  std::uint64_t next_number_ = 0;
  std::size_t threads_;
  std::size_t jobs_max_;
  std::map<const WaitShare*, std::size_t> working_;  // jobs that have begun and do not wait for a load
  std::size_t waiting_ = 0;
  std::size_t idle_ = 0;  // threads without a job
  bool ending_ = false;
  std::vector<std::jthread> running_;  // last: joined before the rest is destroyed
};

}  // namespace sluice::executor
