// Jobs of a pool that begin when what they read has come, so that no thread waits with them.
//
// Thread safety: submit() may be called from any thread.
#pragma once

#include <memory>

#include "src/executor/thread_pool.h"
#include "src/pipeline/file_reader.h"

namespace sluice::executor {

class ReadingJobs {
 public:
  // REQUIRES: the pool outlives this
  explicit ReadingJobs(ThreadPool& pool);
  // Jobs whose bytes have not come never begin.
  ~ReadingJobs();

  // `ahead`: what the job reads; null: that is at hand. False: the pool's queue is full. Where that turns out later,
  // `refused` runs on another thread.
  bool submit(const std::shared_ptr<pipeline::ReadAhead>& ahead, ThreadPool::Job job, std::function<void()> refused,
              const ThreadPool::Waits& waits = nullptr);

 private:
  struct Gate;
  const std::shared_ptr<Gate> gate_;  // what those that tell us may use when this has gone
};

}  // namespace sluice::executor
