#pragma once

#include <functional>

#include "src/base/result.h"

namespace sluice::bench {

// Calls work(n) for every n below `count` on `threads` threads; the first error ends it.
Result<void> in_parallel(int count, int threads, const std::function<Result<void>(int)>& work);

}  // namespace sluice::bench
