// The orders of all jobs that share a cache, and when the next use of a sample is to be expected.
//
// Time is counted in uses by all jobs together, so nothing here reads a clock. A job makes a share of them, its rate,
// which is measured: uses count less the longer ago they are (half of it after 2,800). A next use that is d uses of the
// job away (job_order.h) is d / rate uses of all away, and the next use of a sample is the least over the jobs. The
// uses of a job recede as its rate falls, and none is expected once that is a 64th of an equal share: it has paused, or
// gone without a word. So what a job announces counts as far as it makes uses.
//
// Where a single job has use for a sample, it does not count where in the job's next epoch it comes, but only whether
// it does. Alone a job uses each sample once an epoch, so all that come in the next one are worth the same, and nothing
// is gained by exchanging one for another. (Every hit after the boundary of an epoch was there at the boundary, and no
// more than fit can be.)
//
// Bounds: Limits. Cost: of a use O(1), of a question O(jobs), of an announcement O(samples). Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "src/cache/order/job_order.h"

namespace sluice::cache {

class SharedOrders {
 public:
  struct Limits {
    std::uint32_t samples = 0;
    std::size_t jobs = 64;
    std::uint64_t bytes = 256 << 20;  // of all orders
  };
  using Job = std::uint64_t;  // whatever the caller calls it

  explicit SharedOrders(const Limits& limits) : limits_(limits) {}

  // `length` and `members`: as JobOrder's. A job that is known already begins anew. One that has paused makes place
  // where there are too many. ResourceExhausted: a bound is reached. The cache then serves the job, and keeps nothing
  // for its sake. InvalidArgument: a member is no sample.
  Result<void> join(Job job, std::uint32_t length, std::span<const std::uint32_t> members = {});
  void leave(Job job);
  bool knows(Job job) const { return sharers_.contains(job); }

  // As JobOrder's. NotFound for a job that has not joined, ResourceExhausted beyond the bound on bytes. After an error
  // the job goes on as if it had announced nothing.
  Result<void> begin_epoch(Job job, std::span<const std::uint32_t> uses, std::uint32_t position = 0);
  Result<void> announce_next_epoch(Job job, std::span<const std::uint32_t> uses);

  // Ignored for a sample beyond the limit; of an unknown job only time passes.
  void use(Job job, std::uint32_t sample);

  // In uses since the beginning, so that it stays the same while all jobs go on as they do; infinite: none is expected.
  double next_use(std::uint32_t sample) const;

  // Whether some job that has not paused knows the sample.
  bool is_known(std::uint32_t sample) const;

  // The jobs that know the sample, paused or not.
  void for_each_knowing(std::uint32_t sample, const std::function<void(Job)>& found) const;

  std::uint64_t uses() const { return uses_; }
  std::uint64_t memory_bytes() const;

  // Raised where many next uses may have become later at once: an order was announced or begins, a job joins, leaves or
  // pauses.
  std::uint64_t revision() const { return revision_; }

 private:
  struct Sharer {
    JobOrder order;
    double recent_uses = 0;
    bool is_paused = false;
  };

  Result<Sharer*> sharer_with_room(Job job, std::size_t uses);
  void let_rates_fade();
  bool has_paused(const Sharer& sharer) const;

  const Limits limits_;
  std::map<Job, Sharer> sharers_;
  std::uint64_t uses_ = 0;
  std::uint64_t revision_ = 0;
};

}  // namespace sluice::cache
