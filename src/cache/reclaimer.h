// A thread that makes room on a shared disk, so that those who answer questions do not.
//
// Thread safety: wake() may be called from any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/cache/shared_disk.h"

namespace sluice::cache {

class Reclaimer {
 public:
  // REQUIRES: the disk outlives it.
  explicit Reclaimer(SharedDisk& disk)
      : thread_([this, &disk](const std::stop_token& stop) {
          while (wait(stop)) disk.reclaim(stop);
        }) {}

  // Has all reclaimed that is wanted now.
  void wake() {
    std::lock_guard lock(mutex_);
    is_awake_ = true;
    changed_.notify_one();
  }

 private:
  bool wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return is_awake_; })) return false;
    is_awake_ = false;
    return true;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_awake_ = false;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace sluice::cache
