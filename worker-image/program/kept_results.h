// Results of the user's functions in the cache of source files, as Python executors ask for them.
#pragma once

#include <memory>

#include "src/cache/cached_files.h"
#include "src/executor/kept_calls.h"

namespace sluice::program {

// Thread safety: what it gives may be used from any thread.
// REQUIRES: the clock outlives it.
std::shared_ptr<executor::KeptCalls> kept_results(std::shared_ptr<const cache::CachedFiles> files, const Clock& clock);

}  // namespace sluice::program
