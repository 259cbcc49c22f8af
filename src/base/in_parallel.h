#pragma once

#include <functional>

#include "src/base/result.h"

namespace sluice {

// Calls work(i) once for every i below `count`, begun in that order, from `threads` threads (at least one), of which
// the caller's is one. After an error nothing more is begun; returns when all that was begun has ended, with the first
// error. REQUIRES: work may be called from several threads at once, and throws nothing.
Result<void> in_parallel(int count, int threads, const std::function<Result<void>(int)>& work);

}  // namespace sluice
