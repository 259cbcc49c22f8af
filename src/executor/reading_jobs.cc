#include "src/executor/reading_jobs.h"

#include <mutex>
#include <utility>

namespace sluice::executor {

struct ReadingJobs::Gate {
  std::mutex mutex;
  ThreadPool* pool;  // null: closed
};

ReadingJobs::ReadingJobs(ThreadPool& pool) : gate_(std::make_shared<Gate>()) { gate_->pool = &pool; }

ReadingJobs::~ReadingJobs() {
  std::lock_guard lock(gate_->mutex);
  gate_->pool = nullptr;
}

bool ReadingJobs::submit(const std::shared_ptr<pipeline::ReadAhead>& ahead, ThreadPool::Job job,
                         std::function<void()> refused, const ThreadPool::Waits& waits) {
  const auto begin = [gate = gate_, job, waits, refused = std::move(refused)] {
    {
      std::lock_guard lock(gate->mutex);
      if (gate->pool == nullptr || gate->pool->submit(job, waits)) return;
    }
    refused();
  };
  if (ahead != nullptr && ahead->when_come(begin)) return true;
  return gate_->pool->submit(std::move(job), waits);
}

}  // namespace sluice::executor
