// What jobs have announced to a node's cache, as far as the next announcement depends on it.
//
// A job declares its data set once, as the places of the samples' records, under a number that tells it from others. An
// epoch is then a seed. Ranks of one job announce the same epoch, each for its own part of it: the parts are put
// together, as the job is one for the cache. Where several caches share a data set's records (homes.h), each has its
// part of them, and of the epoch the uses of these. Bounds: kJobsMost, the ranks of an EpochOrder, a bit a sample.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "src/base/epoch_order.h"
#include "src/base/result.h"

namespace sluice::cache {

class AnnouncedOrders {
 public:
  using Job = std::uint64_t;
  using DataSet = std::uint64_t;
  static constexpr std::size_t kJobsMost = 256;
  static constexpr std::uint32_t kRanksMost = 1 << 16;

  // `is_here`: of each sample, whether its record is of this cache; empty: all are.
  void declared(Job job, DataSet data_set, std::uint64_t samples, std::vector<bool> is_here = {});
  bool has_declared(Job job, DataSet data_set) const;
  std::optional<DataSet> data_set_of(Job job) const;

  // The uses of the epoch by all ranks that have announced it, as indices into those samples of the data set that are
  // here. Errors: InvalidArgument for an order of another length, or a rank that is none. REQUIRES: has_declared()
  Result<std::vector<std::uint32_t>> uses_of(Job job, const EpochOrder& order);

 private:
  struct Epoch {
    EpochOrder order;  // without its rank, and whether it is the next one
    std::set<std::uint32_t> ranks;
  };
  struct Announced {
    DataSet data_set = 0;
    std::uint64_t samples = 0;
    std::vector<bool> is_here;
    std::array<Epoch, 2> epochs;  // the newest one comes first: ranks are not at the same place
  };
  std::map<Job, Announced> jobs_;
};

}  // namespace sluice::cache
