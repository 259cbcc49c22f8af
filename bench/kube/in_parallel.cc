#include "bench/kube/in_parallel.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace sluice::bench {

Result<void> in_parallel(int count, int threads, const std::function<Result<void>(int)>& work) {
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::optional<Error> failure;
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (int n = next++; n < count; n = next++) {
        if (const auto done = work(n); !done.ok()) {
          std::lock_guard lock(mutex);
          failure = done.error();
          next = count;
        }
      }
    });
  }
  workers.clear();
  return failure ? Result<void>(*failure) : Result<void>();
}

}  // namespace sluice::bench
