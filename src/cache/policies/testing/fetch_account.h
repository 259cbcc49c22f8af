// What a policy fetches for a list of uses, and the least that is possible. Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "src/cache/policies/cache_policy.h"
#include "src/cache/policies/testing/shared_workload.h"

namespace sluice::cache::testing {

// What a job tells of its order.
enum class Announces {
  kNothing,    // not even that it is there
  kEpoch,      // as each begins
  kNextEpoch,  // and the one after
  kFalsely,    // orders that it does not follow, and positions where it is not
};

CacheSpace space_of(const SharedWorkload& workload, std::uint64_t capacity_bytes);

// Knows all uses to come, of all epochs: the least fetches that are possible. Serves the uses of the workload, in their
// order. REQUIRES: samples of one byte; the workload outlives the policy.
MadeCachePolicy belady(const SharedWorkload& workload, std::uint64_t capacity);

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

// Of the uses of the workload that count; the orders of all. `announces`: of each job; those beyond its end announce
// each epoch.
FetchAccount account_of(CachePolicy& policy, const SharedWorkload& workload,
                        const std::vector<Announces>& announces = {});

}  // namespace sluice::cache::testing
