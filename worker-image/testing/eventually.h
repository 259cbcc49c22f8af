// Waiting for what other threads do: with a deadline, never for a time.
#pragma once

#include <chrono>
#include <thread>

namespace sluice::testing {

// Whether `condition` became true within a minute.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace sluice::testing
