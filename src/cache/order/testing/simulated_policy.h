// Policies of a shared cache, one step for each use: what they serve and what they fetch for it.
//
// The rivals are re-creations of the rule alone, without any system around it:
//   least recently used        the page cache, object caches, MosaicML Streaming
//   first in, first out        caches that evict by age
//   never evict                CoorDL's MinIO
//   substitution on demand     like Quiver: of the next ten batches those that are cached come first, and what all jobs
//                              have used goes
//   substitution, refilled     like Seneca: a miss is answered with any cached sample that the job has not had in this
//                              epoch, and what all jobs have had is replaced by another one in the background
//   Belady                     knows all uses to come, of all epochs: the least fetches that are possible
//   announced orders           ours: shared_records.h
// The substituting ones change the order of samples, so they are for comparison only. Thread safety: none.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "src/cache/order/testing/shared_workload.h"

namespace sluice::cache::testing {

struct Served {
  std::uint32_t sample = 0;
  std::uint32_t fetches = 0;  // those in the background, too
};

class SimulatedPolicy {
 public:
  virtual ~SimulatedPolicy() = default;
  virtual std::string_view name() const = 0;
  virtual Served serve(const SharedUse& use) = 0;
};

// What a job tells of its order.
enum class Announces {
  kNothing,    // not even that it is there
  kEpoch,      // as each begins
  kNextEpoch,  // and the one after
  kFalsely,    // orders that it does not follow, and positions where it is not
};

// REQUIRES, for all: the workload outlives the policy.
std::unique_ptr<SimulatedPolicy> least_recently_used(const SharedWorkload& workload, std::uint64_t capacity_bytes);
std::unique_ptr<SimulatedPolicy> first_in_first_out(const SharedWorkload& workload, std::uint64_t capacity_bytes);
std::unique_ptr<SimulatedPolicy> never_evict(const SharedWorkload& workload, std::uint64_t capacity_bytes);
// REQUIRES, for these three: samples of one byte; for substitution at most 64 jobs.
std::unique_ptr<SimulatedPolicy> belady(const SharedWorkload& workload, std::uint64_t capacity);
std::unique_ptr<SimulatedPolicy> substitution_on_demand(const SharedWorkload& workload, std::uint64_t capacity);
std::unique_ptr<SimulatedPolicy> substitution_refilled(const SharedWorkload& workload, std::uint64_t capacity);
// `announces`: of each job. `on_kept`: told of what is kept, and what was evicted for it.
using OnKept = std::function<void(std::uint32_t sample, const std::vector<std::uint32_t>& evicted)>;
std::unique_ptr<SimulatedPolicy> announced_orders(const SharedWorkload& workload, std::uint64_t capacity_bytes,
                                                  const std::vector<Announces>& announces, OnKept on_kept = {});

struct FetchAccount {
  std::uint64_t uses = 0;
  std::uint64_t fetches = 0;
  std::uint64_t bytes = 0;          // of the samples served
  std::uint64_t fetched_bytes = 0;  // of those among them that were fetched
  bool keeps_orders = true;         // each job got the samples of its order, one after the other

  double fetches_per_use() const { return uses == 0 ? 0 : static_cast<double>(fetches) / static_cast<double>(uses); }
  double fetched_share() const {
    return bytes == 0 ? 0 : static_cast<double>(fetched_bytes) / static_cast<double>(bytes);
  }
};

// Of the uses of the workload that count; the orders of all.
FetchAccount account_of(SimulatedPolicy& policy, const SharedWorkload& workload);

}  // namespace sluice::cache::testing
