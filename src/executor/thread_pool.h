// The threads that execute batches.
//
// Callers count credits and so never submit more jobs than fit; the queue is bounded all the same. A job that is
// running may invite more threads. set_threads() follows a CPU quota that changes at run time. Surplus threads finish
// their job and then idle. Thread safety: all methods may be called from any thread, except that the destructor waits
// for running jobs.
#pragma once

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

 private:
  void start_missing_locked();
  void run(std::size_t number, const std::stop_token& stop);
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
  std::vector<std::jthread> running_;  // last: joined before the rest is destroyed
};

}  // namespace sluice::executor
