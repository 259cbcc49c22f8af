#include "src/executor/shared_work.h"

#include <algorithm>
#include <utility>

#include "src/base/clock.h"
#include "src/executor/process_times.h"

namespace sluice::executor {

void SharedWork::run(Options options, ThreadPool& pool, ThreadState& thread) {
  const std::size_t threads = std::min(pool.threads_for(options.waits), threads_max(options.items));
  const ThreadPool::Waits waits = options.waits;
  const auto work = std::make_shared<SharedWork>(std::move(options));
  if (threads > 1)
    pool.invite(
        threads - 1, [work](ThreadState& invited) { work->take_part(invited); }, waits);
  work->take_part(thread);
}

void SharedWork::take_part(ThreadState& thread) {
  if (!join()) return;
  const double start_seconds = thread_cpu_seconds();
  const auto queued_before = options_.is_exact ? own_queued_seconds() : std::nullopt;
  while (const auto item = claim()) {
    if (auto made = options_.make(*item, thread); !made.ok()) fail(*item, std::move(made).error());
  }
  const auto queued = options_.is_exact ? own_queued_seconds() : std::nullopt;
  leave(thread.scratch.take_costs(), thread_cpu_seconds() - start_seconds,
        queued && queued_before ? std::optional(*queued - *queued_before) : std::nullopt);
}

bool SharedWork::join() {
  std::lock_guard lock(mutex_);
  if (is_finished_) return false;
  ++threads_;
  return true;
}

// In ascending order: all items before one that fails have been claimed, and are made to their ends.
std::optional<std::size_t> SharedWork::claim() {
  const std::size_t item = next_item_++;
  if (item >= failed_item_) return std::nullopt;
  return item;
}

void SharedWork::fail(std::size_t item, Error error) {
  std::lock_guard lock(mutex_);
  if (item >= failed_item_) return;
  failed_item_ = item;
  done_.result = std::move(error);
}

void SharedWork::leave(const pipeline::OpCosts& costs, double busy_seconds, std::optional<double> queued_seconds) {
  {
    std::lock_guard lock(mutex_);
    done_.costs.add(costs);
    done_.busy_seconds += busy_seconds;
    done_.queued_seconds =
        done_.queued_seconds && queued_seconds ? std::optional(*done_.queued_seconds + *queued_seconds) : std::nullopt;
    is_finished_ = --threads_ == 0;
    if (!is_finished_) return;
  }
  options_.finished(std::move(done_));
}

}  // namespace sluice::executor
