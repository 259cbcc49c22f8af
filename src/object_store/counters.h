// What a client of object stores has done so far, for metrics and tests.
//
// Thread safety: each number may be read and changed by any thread; together they are no snapshot.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::object_store {

using Count = std::atomic<std::uint64_t>;

struct Counters {
  Count requests = 0;       // that were sent, those for the same range and those behind redirects, too
  Count bytes = 0;          // of ranges that have come
  Count refused = 0;        // answers that say that it is too much
  Count failed = 0;         // attempts that have failed otherwise, and may have passed
  Count hedged = 0;         // late requests that were asked for once more
  Count hedges_useful = 0;  // of these: the second answer came first
};

}  // namespace sluice::object_store
