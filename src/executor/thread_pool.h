// The threads that execute batches.
//
// Callers count credits and so never submit more jobs than fit; the queue is bounded all the same. A job that is
// running may invite more threads. A job that waits for another process may say so: another thread works meanwhile.
// set_threads() follows a CPU quota that changes at run time. Surplus threads finish their job and then idle. Thread
// safety: all methods may be called from any thread, except that the destructor waits for running jobs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "src/executor/native_batch.h"

namespace sluice::executor {

// The resources of a thread, for its jobs.
struct ThreadState {
  NativeScratch scratch;
  std::stop_token stop;  // requested when the pool is being destroyed
};

class ThreadPool {
 public:
  using Job = std::function<void(ThreadState&)>;

  // Starts `threads`; more, up to `threads_max`, when set_threads() asks for them. `nice` lowers their priority against
  // the other threads of this process (0: as they are).
  ThreadPool(std::size_t threads, std::size_t threads_max, std::size_t queue_max, int nice);
  ~ThreadPool();

  // So many jobs beside those that work have a thread while they wait: all threads' for one thing, and a few more.
  static constexpr std::size_t waiting_max(std::size_t threads_max) { return threads_max + 4; }

  // False if the queue is full or the pool is ending: the job was not taken.
  bool submit(Job job);
  // So many threads help a running job as soon as they are free, before any job that waits. REQUIRES: called by that
  // job, once, with at most as many as the pool has.
  void invite(std::size_t threads, const Job& help);

  // REQUIRES: 1 <= threads; more than threads_max counts as threads_max.
  void set_threads(std::size_t threads);
  std::size_t threads() const;
  std::size_t threads_max() const { return threads_max_; }
  std::size_t queued() const;

  // From here on the calling job waits, and does not count as one of `threads`. REQUIRES: a job of this pool calls
  // them, in turns.
  void begin_wait();
  void end_wait();
  // How many jobs wait and do not keep others from a thread: waiting_max() at the most.
  std::size_t waiting() const;

 private:
  std::size_t waiting_locked() const { return std::min(waiting_, waiting_max(threads_max_)); }
  void start_missing_locked();
  void run(const std::stop_token& stop);
  // REQUIRES: there is one.
  Job take_locked();

  const std::size_t threads_max_;
  const std::size_t queue_max_;
  const int nice_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> queue_;
  std::deque<Job> invitations_;
  std::size_t threads_;
  std::size_t working_ = 0;  // jobs that have begun and do not wait
  std::size_t waiting_ = 0;
  bool ending_ = false;
  std::vector<std::jthread> running_;  // last: joined before the rest is destroyed
};

}  // namespace sluice::executor
