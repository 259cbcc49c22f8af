// What the feeder's log says about an arena that is too small or too large: each sentence names the setting.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "worker-image/feeder/window.h"

namespace sluice::feeder {

// What the feeder itself takes beside its arena, at the least.
inline constexpr std::size_t kFeederOwnBytes = std::size_t{64} << 20;

// Why the kernel will kill the feeder when its arena is full; empty: it will not. `limit_bytes`: of its memory.
std::string arena_exceeds_memory(std::size_t arena_bytes, std::optional<std::size_t> limit_bytes);

// What is told of one client, each thing at most a few times however long it stays. Thread safety: none.
class ArenaFit {
 public:
  // The line to log now that the client's window is `window_batches(inputs)`; empty: none, or it was told. Told again
  // when twice as large an arena is wanted.
  std::string told_of(const WindowInputs& inputs);

  // The line to log after a report of the loop's time since the last one; empty: none, or it was told. It is due where
  // the window is at its minimum for want of memory, and the loop waits.
  std::string told_of_wait(double wait_seconds, double compute_seconds);

 private:
  std::size_t wanted_bytes_ = 0;
  std::size_t told_bytes_ = 0;
  bool is_minimum_ = false;  // for want of memory
  bool told_wait_ = false;
};

}  // namespace sluice::feeder
