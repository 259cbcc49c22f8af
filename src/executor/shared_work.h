// One batch, made by as many threads of a pool as are free.
//
// The unit of work is an item of the batch: one sample, made into its place in the slot. So a slow sample holds up one
// thread. The others make the rest of its batch, and then the next batch. The thread that begins a batch invites the
// others, one for each kItemsPerThread: waking a thread costs as much as a small sample. Invited threads come before
// the next batch begins, as the training loop waits for the older one.
//
// Invariants: each item is made once, unless an earlier one fails; the error is that of the first item that fails, as
// with one thread. `finished` runs once, on the thread that leaves last.
// Related: Lobster (ICPP'22) moves threads to the rank that is behind; here they come to the batch that is.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "src/executor/thread_pool.h"

namespace sluice::executor {

// Thread safety: run() may be called from any thread of the pool.
class SharedWork {
 public:
  struct Done {
    Result<void> result;
    pipeline::OpCosts costs;               // of all threads, of failed items, too
    double busy_seconds = 0;               // CPU, of all threads
    std::optional<double> queued_seconds;  // for which they waited for a CPU; nullopt: it is not known
  };
  struct Options {
    std::size_t items = 0;
    // Of different items at once. Cancelled ends the batch like any other error.
    std::function<Result<void>(std::size_t item, ThreadState& thread)> make;
    std::function<void(Done)> finished;
    ThreadPool::Waits waits = nullptr;  // of its pipeline
    bool is_exact = false;              // queued_seconds is wanted
  };

  static constexpr std::size_t kItemsPerThread = 4;
  static std::size_t threads_max(std::size_t items) { return (items + kItemsPerThread - 1) / kItemsPerThread; }

  // For run().
  explicit SharedWork(Options options) : options_(std::move(options)), failed_item_(options_.items) {
    if (options_.is_exact) done_.queued_seconds = 0;
  }

  // Makes all items, with the calling thread, a job of `pool`, and with what others the pool has free.
  static void run(Options options, ThreadPool& pool, ThreadState& thread);

 private:
  void take_part(ThreadState& thread);
  bool join();
  std::optional<std::size_t> claim();
  void fail(std::size_t item, Error error);
  void leave(const pipeline::OpCosts& costs, double busy_seconds, std::optional<double> queued_seconds);

  const Options options_;
  std::atomic<std::size_t> next_item_ = 0;
  std::atomic<std::size_t> failed_item_;  // the first one so far; else the number of items
  std::mutex mutex_;
  std::size_t threads_ = 0;  // that are at it
  bool is_finished_ = false;
  Done done_;
};

}  // namespace sluice::executor
