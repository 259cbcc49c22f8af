#include "src/kube/backoff.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

namespace sluice::kube {

UniformRandom system_random() {
  struct Generator {
    std::mutex mutex;
    std::mt19937_64 engine{std::random_device{}()};
  };
  return [generator = std::make_shared<Generator>()] {
    std::lock_guard lock(generator->mutex);
    return std::uniform_real_distribution<double>(0.0, 1.0)(generator->engine);
  };
}

Backoff::Backoff(BackoffOptions options, const Clock& clock, UniformRandom random)
    : options_(options), clock_(clock), random_(std::move(random)) {}

std::chrono::milliseconds Backoff::next() {
  const Clock::TimePoint now = clock_.now();
  const bool starts_over = !last_ || now - *last_ > options_.reset_after;
  last_ = now;
  pause_ = starts_over ? options_.first
                       : std::min(options_.cap,
                                  std::chrono::duration_cast<std::chrono::milliseconds>(pause_ * options_.factor));
  return pause_ + std::chrono::duration_cast<std::chrono::milliseconds>(pause_ * (options_.jitter * random_()));
}

}  // namespace sluice::kube
