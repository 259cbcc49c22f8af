#include "src/executor/thread_pool.h"

#include <sys/resource.h>

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
  {
    std::lock_guard lock(mutex_);
    ending_ = true;  // from here on `running_` does not grow: a job that begins to wait starts no thread
  }
  for (std::jthread& thread : running_) thread.request_stop();
  running_.clear();
}

void ThreadPool::start_missing_locked() {
  if (ending_) return;
  while (running_.size() < threads_ + waiting_locked()) {
    running_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  }
}

bool ThreadPool::submit(Job job) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= queue_max_) return false;
    queue_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void ThreadPool::invite(std::size_t threads, const Job& help) {
  {
    std::lock_guard lock(mutex_);
    invitations_.insert(invitations_.end(), threads, help);
  }
  changed_.notify_all();
}

void ThreadPool::begin_wait() {
  {
    std::lock_guard lock(mutex_);
    --working_;
    ++waiting_;
    start_missing_locked();
  }
  changed_.notify_one();
}

void ThreadPool::end_wait() {
  std::lock_guard lock(mutex_);
  ++working_;
  --waiting_;
}

std::size_t ThreadPool::waiting() const {
  std::lock_guard lock(mutex_);
  return waiting_locked();
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

void ThreadPool::run(const std::stop_token& stop) {
  // On Linux a priority belongs to the thread; failing to lower it costs latency, not correctness.
  if (nice_ > 0) (void)::setpriority(PRIO_PROCESS, 0, nice_);
  ThreadState state;
  state.stop = stop;
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return working_ < threads_ && !(queue_.empty() && invitations_.empty()); };
  while (changed_.wait(lock, stop, has_work)) {
    if (stop.stop_requested()) return;
    Job job = take_locked();
    ++working_;
    lock.unlock();
    job(state);
    job = nullptr;  // outside of the lock: what it holds may be much
    lock.lock();
    --working_;
  }
}

ThreadPool::Job ThreadPool::take_locked() {
  std::deque<Job>& oldest = invitations_.empty() ? queue_ : invitations_;
  Job job = std::move(oldest.front());
  oldest.pop_front();
  return job;
}

}  // namespace sluice::executor
