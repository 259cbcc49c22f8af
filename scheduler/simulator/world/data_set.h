// What jobs read, and the cache before the storage.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace sluice::simulator {

struct DataSet {
  std::string name;
  double gigabytes = 0;
};

enum class CacheRule {
  kNone,           // every read reaches the storage
  kLru,            // the page cache
  kKeep,           // never evicts: CoorDL's MinIO
  kReuseDistance,  // Sluice's: the announced order of the epoch of each job
  kQuiver,         // substitutes on demand
  kSeneca,         // substitutes, and refills in the background
};

// As scenarios and policies name it: none, lru, keep, reuse-distance, quiver, seneca. Errors: InvalidArgument, with the
// names there are.
inline constexpr std::array kRivalCaches = {CacheRule::kNone, CacheRule::kLru, CacheRule::kKeep, CacheRule::kQuiver,
                                            CacheRule::kSeneca};
Result<CacheRule> cache_rule(std::string_view name);
std::string_view name_of(CacheRule rule);

// One room for the cached data of all jobs of a cluster.
struct CacheSpec {
  double gigabytes = 0;
  CacheRule rule = CacheRule::kLru;  // where the policy brings no cache of its own
};

}  // namespace sluice::simulator
