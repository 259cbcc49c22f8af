#include "src/executor/thread_pool.h"

#include <sys/resource.h>

#include <algorithm>

namespace sluice::executor {

ThreadPool::ThreadPool(std::size_t threads, std::size_t threads_max, std::size_t queue_max, int nice)
    : threads_max_(std::max(threads, threads_max)),
      queue_max_(queue_max),
      nice_(nice),
      threads_(std::max<std::size_t>(1, threads)) {
  std::lock_guard lock(mutex_);
  start_missing_locked();
}

ThreadPool::~ThreadPool() {
  for (std::jthread& thread : running_) thread.request_stop();
  running_.clear();
}

void ThreadPool::start_missing_locked() {
  for (std::size_t number = running_.size(); number < threads_; ++number) {
    running_.emplace_back([this, number](const std::stop_token& stop) { run(number, stop); });
  }
}

bool ThreadPool::submit(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(job));
  }
  // Not notify_one: the thread that wakes may be one that set_threads() told to idle.
  changed_.notify_all();
  return true;
}

void ThreadPool::invite(std::size_t threads, const Job& help) {
  {
    std::lock_guard lock(mutex_);
    invitations_.insert(invitations_.end(), threads, help);
  }
  changed_.notify_all();
}

void ThreadPool::set_threads(std::size_t threads) {
  {
    std::lock_guard lock(mutex_);
    threads_ = std::clamp<std::size_t>(threads, 1, threads_max_);
    start_missing_locked();
  }
  changed_.notify_all();
}

std::size_t ThreadPool::threads() const {
  std::lock_guard lock(mutex_);
  return threads_;
}

std::size_t ThreadPool::queued() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

void ThreadPool::run(std::size_t number, const std::stop_token& stop) {
  // On Linux a priority belongs to the thread; failing to lower it costs latency, not correctness.
  if (nice_ > 0) (void)::setpriority(PRIO_PROCESS, 0, nice_);
  ThreadState state;
  state.stop = stop;
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return number < threads_ && !(queue_.empty() && invitations_.empty()); }))
        return;
      if (stop.stop_requested()) return;
      job = take_locked();
    }
    job(state);
  }
}

ThreadPool::Job ThreadPool::take_locked() {
  std::deque<Job>& oldest = invitations_.empty() ? queue_ : invitations_;
  Job job = std::move(oldest.front());
  oldest.pop_front();
  return job;
}

}  // namespace sluice::executor
