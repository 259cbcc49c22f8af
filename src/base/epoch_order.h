// The order in which an epoch uses the samples of a data set, as the seed that torch's samplers make it of.
#pragma once

#include <cstdint>

namespace sluice {

// torch.randperm(length) after manual_seed(seed), dealt out to `ranks` as DistributedSampler does.
struct EpochOrder {
  std::uint64_t seed = 0;
  std::uint64_t length = 0;  // of the data set
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  bool drops_last = false;
  bool is_next = false;  // it begins when the present epoch is through

  friend bool operator==(const EpochOrder&, const EpochOrder&) = default;
};

}  // namespace sluice
