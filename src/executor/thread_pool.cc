#include "src/executor/thread_pool.h"

#include <sys/resource.h>

namespace sluice::executor {
namespace {

thread_local const WaitShare* waits_of_job = nullptr;  // of the job that this thread runs

}  // namespace

ThreadPool::ThreadPool(std::size_t threads, std::size_t threads_max, std::size_t queue_max, int nice)
    : threads_max_(std::max(threads, threads_max)),
      queue_max_(queue_max),
      nice_(nice),
      threads_(std::max<std::size_t>(1, threads)),
      jobs_max_(threads_max_ + kJobsBesideMax) {
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

bool ThreadPool::may_begin_locked(const Waits& waits) const {
  if (waits != nullptr && waits->load() < 1) {
    const auto own = working_.find(waits.get());
    return own == working_.end() || own->second < waits->jobs_on(threads_);
  }
  std::size_t computing = waiting_ - waiting_locked();
  for (const auto& [others, jobs] : working_)
    if (others == nullptr || others->load() == 1) computing += jobs;
  return computing < threads_;
}

ThreadPool::Queue::iterator ThreadPool::next_locked(Queue& queue) {
  auto oldest = queue.end();
  for (auto entries = queue.begin(); entries != queue.end(); ++entries) {
    if (!may_begin_locked(entries->first)) continue;
    if (oldest == queue.end() || entries->second.front().number < oldest->second.front().number) oldest = entries;
  }
  return oldest;
}

bool ThreadPool::has_work_locked() {
  const std::size_t jobs = running_.size() - idle_;
  if (jobs >= std::max(jobs_max_, threads_ + waiting_locked())) return false;
  return next_locked(invitations_) != invitations_.end() || next_locked(queue_) != queue_.end();
}

void ThreadPool::start_missing_locked() {
  if (ending_) return;
  const auto start = [this] {
    ++idle_;
    running_.emplace_back([this](const std::stop_token& stop) { run(stop); });
  };
  while (running_.size() < threads_ + waiting_locked()) start();
  // One at a time: the thread that takes the job looks whether there is another one.
  if (idle_ == 0 && has_work_locked()) start();
}

bool ThreadPool::submit(Job job, const Waits& waits) {
  {
    std::lock_guard lock(mutex_);
    if (queued_ >= queue_max_) return false;
    ++queued_;
    queue_[waits].push_back({next_number_++, std::move(job), waits});
    start_missing_locked();
  }
  changed_.notify_one();
  return true;
}

void ThreadPool::invite(std::size_t threads, const Job& help, const Waits& waits) {
  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < threads; ++i) invitations_[waits].push_back({next_number_++, help, waits});
    start_missing_locked();
  }
  changed_.notify_all();
}

void ThreadPool::begin_wait() {
  {
    std::lock_guard lock(mutex_);
    end_locked(waits_of_job);
    ++waiting_;
    start_missing_locked();
  }
  changed_.notify_one();
}

void ThreadPool::end_wait() {
  std::lock_guard lock(mutex_);
  begin_locked(waits_of_job);
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

void ThreadPool::set_jobs_max(std::size_t jobs) {
  {
    std::lock_guard lock(mutex_);
    jobs_max_ = std::min(jobs, threads_max_ + kJobsBesideMax);
    start_missing_locked();
  }
  changed_.notify_all();
}

std::size_t ThreadPool::jobs_max() const {
  std::lock_guard lock(mutex_);
  return std::max(jobs_max_, threads_);
}

void ThreadPool::follow_loads() {
  {
    std::lock_guard lock(mutex_);
    start_missing_locked();
  }
  changed_.notify_all();
}

std::size_t ThreadPool::threads() const {
  std::lock_guard lock(mutex_);
  return threads_;
}

std::size_t ThreadPool::threads_for(const Waits& waits) const {
  std::lock_guard lock(mutex_);
  return waits == nullptr ? threads_ : std::min(waits->jobs_on(threads_), std::max(jobs_max_, threads_));
}

std::size_t ThreadPool::queued() const {
  std::lock_guard lock(mutex_);
  return queued_;
}

void ThreadPool::begin_locked(const WaitShare* waits) { ++working_[waits]; }

void ThreadPool::end_locked(const WaitShare* waits) {
  const auto jobs = working_.find(waits);
  if (--jobs->second == 0) working_.erase(jobs);
}

void ThreadPool::run(const std::stop_token& stop) {
  // On Linux a priority belongs to the thread; failing to lower it costs latency, not correctness.
  if (nice_ > 0) (void)::setpriority(PRIO_PROCESS, 0, nice_);
  ThreadState state;
  state.stop = stop;
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return has_work_locked(); })) {
    if (stop.stop_requested()) return;
    Entry entry = take_locked();
    --idle_;
    begin_locked(entry.waits.get());
    start_missing_locked();
    lock.unlock();
    waits_of_job = entry.waits.get();
    entry.job(state);
    entry.job = nullptr;  // outside of the lock: what it holds may be much
    lock.lock();
    end_locked(entry.waits.get());
    ++idle_;
  }
}

ThreadPool::Entry ThreadPool::take_locked() {
  const auto invited = next_locked(invitations_);
  const bool is_invited = invited != invitations_.end();
  Queue& queue = is_invited ? invitations_ : queue_;
  const auto entries = is_invited ? invited : next_locked(queue_);
  if (!is_invited) --queued_;
  Entry entry = std::move(entries->second.front());
  entries->second.pop_front();
  if (entries->second.empty()) queue.erase(entries);
  return entry;
}

}  // namespace sluice::executor
