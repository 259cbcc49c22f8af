#pragma once

#include <functional>

#include "src/base/result.h"

namespace sluice {

// Calls work(i) once for every i below `count`, in that order, from `threads` threads, the caller's among them.
// After an error no further call begins. Returns the first error, once every call that began has ended. An exception
// of `work` is an Internal error. REQUIRES: threads >= 1; work may be called from several threads at once.
Result<void> in_parallel(int count, int threads, const std::function<Result<void>(int)>& work);

}  // namespace sluice
