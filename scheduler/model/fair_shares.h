// How a resource is shared that serves all who ask at once, such as a storage.
//
// Thread safety: pure function.
#pragma once

#include <vector>

namespace sluice::scheduler {

// Max-min fair shares of `capacity` among `needs`: none gets more than it needs, and those that get less than that all
// get the same. Both may be 0 or infinite.
std::vector<double> fair_shares(const std::vector<double>& needs, double capacity);

}  // namespace sluice::scheduler
