// The way from a process to the cache of its node: the seam for one that is slow, gone, or lies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"

namespace sluice::cache {

// Thread safety: ask() may be called from any thread.
class NodeCacheLine {
 public:
  enum class Wish { kFind, kKeep, kAnnounce };

  virtual ~NodeCacheLine() = default;

  // Sends the question `head` and `value`, and waits for the answer: its first bytes fill `answer_head`, the others
  // replace `answer_value`. How many bytes of `answer_head` there were: fewer than asked for only where the answer
  // ends. Errors: DeadlineExceeded after `patience`; Unavailable; ResourceExhausted if the cache has too much to do.
  virtual Result<std::size_t> ask(Wish wish, std::span<const std::uint8_t> head, std::span<const std::uint8_t> value,
                                  Clock::Duration patience, std::span<std::uint8_t> answer_head,
                                  std::vector<std::uint8_t>& answer_value) = 0;
};

}  // namespace sluice::cache
