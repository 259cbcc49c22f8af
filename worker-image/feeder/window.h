// How many batches a client may have outstanding: the policy, as a pure function.
//
// A batch is outstanding from its request until the training loop gets it, so the window is the prefetch queue. It must
// be deep enough to keep every executor busy while the slowest of them still makes the oldest batch. It must be so
// shallow that the waiting batches fit in the arena beside those being made; others would have to be copied out.
#pragma once

#include <cstddef>

namespace sluice::feeder {

struct WindowInputs {
  std::size_t credits = 0;           // of all executors together
  std::size_t clients = 1;           // that share the arena
  std::size_t prefetch_batches = 0;  // the least that the client would like
  std::size_t arena_bytes = 0;
  std::size_t batch_bytes = 0;  // the client's largest batch; 0: not known yet
};

inline constexpr std::size_t kWindowMin = 2;
inline constexpr std::size_t kWindowMax = 1024;

std::size_t window_batches(const WindowInputs& inputs);

// The smallest arena in which each client can have as many batches ahead as it would like, and at least kWindowMin.
// REQUIRES: inputs.batch_bytes > 0.
std::size_t arena_bytes_wanted(const WindowInputs& inputs);

// Memory that must stay free of lent slots, so that the next batch always finds room: a batch, or an eighth of the
// arena.
std::size_t keep_bytes(std::size_t arena_bytes, std::size_t largest_batch_bytes);

}  // namespace sluice::feeder
