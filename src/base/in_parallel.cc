#include "src/base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/guarded.h"

namespace sluice {

Result<void> in_parallel(int count, int threads, const std::function<Result<void>(int)>& work) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto do_the_rest = [&] {
    for (int i = next++; i < count; i = next++) {
      const Result<void> done = guarded(ErrorCode::kInternal, "in parallel", [&] { return work(i); });
      if (done.ok()) continue;
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = done.error();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < std::min(threads, count); ++t) others.emplace_back(do_the_rest);
    do_the_rest();
  }
  if (first_error) return *first_error;
  return {};
}

}  // namespace sluice
