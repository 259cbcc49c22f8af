// How much of a core a pipeline's batch takes while it is made. The rest of that time it waits: for a disk, a network
// or a clock.
//
// Glossary
//   busy     CPU seconds that batches took, of all their threads and processes.
//   blocked  seconds for which they neither ran nor waited for a CPU.
//   load     the share of a core that one batch in the making counts for: 1 if it computes.
// Formula
//   So many batches in the making fill one core: 1 + blocked / busy (B. Goetz et al., Java Concurrency in Practice,
//   8.2). That holds if they wait by turns. They do not, so the waits count kSlack times:
//   1 / load = 1 + kSlack * blocked / busy.
// Why it does not swing
//   A wait for a CPU is neither busy nor blocked, so the load does not depend on how many batches there are. A
//   pipeline that computes must gain no executors. So it takes some blocked seconds, and a share of waits beyond what
//   measuring alone shows, to count as one that waits; at half of that share it computes again.
// Thread safety
//   All methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>

namespace sluice::executor {

class WaitShare {
 public:
  static constexpr double kSlack = 3;
  static constexpr double kLoadMin = 1.0 / 64;
  static constexpr double kWaitsAbove = 0.04;      // blocked / (busy + blocked)
  static constexpr double kEvidenceSeconds = 0.2;  // blocked, before the first change
  static constexpr double kToldChange = 0.2;       // of the load: less is not worth an order
  static constexpr double kKept = 7.0 / 8;         // of what was seen, with each further observation

  // How many jobs of the pipeline run at once at most, where it waits: as many as its loader would have workers.
  void set_jobs_max(std::size_t jobs) { jobs_max_ = jobs; }
  // So many run at once on an executor of so many threads.
  std::size_t jobs_on(std::size_t threads) const;

  // Batches, or a part of one, have been so long at it. True if load() has changed.
  bool observe(double busy_seconds, double blocked_seconds);

  // The same of figures that waits for a CPU are part of. Where they are small all the same, that does not matter.
  // Where they are not, they count for nothing, and wants_exact() asks for others: these cost a look at the kernel's.
  bool observe_rough(double busy_seconds, double blocked_seconds);
  bool wants_exact() const { return wants_exact_; }

  // kLoadMin to 1; 1 until there is reason to think otherwise.
  double load() const { return load_; }

 private:
  static bool is_small(double busy_seconds, double blocked_seconds);
  double load_of_seen() const;

  std::mutex mutex_;
  double busy_seconds_ = 0;     // recent ones count more
  double blocked_seconds_ = 0;  // as these
  bool waits_ = false;
  std::atomic<double> load_ = 1;
  std::atomic<bool> wants_exact_ = false;
  std::atomic<std::size_t> jobs_max_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace sluice::executor
