// Policies of a cache that several jobs share, one step for each use: what they serve and what they fetch for it.
//
// The rivals are re-creations of the rule alone, without any system around it:
//   no cache                   every use is fetched
//   least recently used        the page cache, object caches, MosaicML Streaming
//   first in, first out        caches that evict by age
//   never evict                CoorDL's MinIO
//   substitution on demand     like Quiver: of the next ten batches those that are cached come first, and what all jobs
//                              have used goes
//   substitution, refilled     like Seneca: a miss is answered with any cached sample that the job has not had in this
//                              epoch, and what all jobs have had is replaced by another one in the background
//   announced orders           ours: shared_records.h, as it is in the daemon
// The substituting ones change the order of samples, so they are for comparison only. Neither drops what all jobs have
// had while a single job reads: it would fetch everything anew in each epoch, and keeping serves it better.
//
// Samples are numbers below CacheSpace::bytes.size(); jobs are numbers of any kind. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace sluice::cache {

struct CacheSpace {
  std::vector<std::uint32_t> bytes;  // of each sample
  std::uint64_t capacity_bytes = 0;
};

struct Served {
  std::uint32_t sample = 0;
  std::uint32_t fetches = 0;  // those in the background, too
};

class CachePolicy {
 public:
  CachePolicy() = default;
  CachePolicy(const CachePolicy&) = delete;
  CachePolicy& operator=(const CachePolicy&) = delete;
  virtual ~CachePolicy() = default;

  virtual std::string_view name() const = 0;

  // An epoch of the job begins at a position of its order: later than the first where the job begins anew in its
  // middle. A job that was not known joins.
  virtual void begin_epoch(std::uint32_t job, const std::vector<std::uint32_t>& order, std::uint32_t position);
  // The order of the epoch after it, if the job knows that.
  virtual void announce_next_epoch(std::uint32_t job, const std::vector<std::uint32_t>& order);
  // The job's next use, which is `sample` by its order. Substituting policies REQUIRE begin_epoch() before it, and a
  // call for each place of the order.
  virtual Served serve(std::uint32_t job, std::uint32_t sample) = 0;
  // The job makes no more uses.
  virtual void leave(std::uint32_t job);
};

using MadeCachePolicy = std::unique_ptr<CachePolicy>;

MadeCachePolicy no_cache();
MadeCachePolicy least_recently_used(CacheSpace space);
MadeCachePolicy first_in_first_out(CacheSpace space);
MadeCachePolicy never_evict(CacheSpace space);

// Of the jobs that share, those beyond this number do not count: what they have not had is dropped all the same.
inline constexpr std::uint32_t kSubstitutingJobsMax = 64;
// Both REQUIRE samples of one byte.
MadeCachePolicy substitution_on_demand(const CacheSpace& space);
MadeCachePolicy substitution_refilled(const CacheSpace& space);

// `on_kept`: told of what is kept, and what was evicted for it.
using OnKept = std::function<void(std::uint32_t sample, const std::vector<std::uint32_t>& evicted)>;
MadeCachePolicy announced_orders(CacheSpace space, OnKept on_kept);
inline MadeCachePolicy announced_orders(CacheSpace space) { return announced_orders(std::move(space), {}); }

}  // namespace sluice::cache
