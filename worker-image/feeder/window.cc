#include "worker-image/feeder/window.h"

#include <algorithm>

namespace sluice::feeder {

std::size_t keep_bytes(std::size_t arena_bytes, std::size_t largest_batch_bytes) {
  return std::min(arena_bytes, std::max(largest_batch_bytes, arena_bytes / 8));
}

std::size_t arena_bytes_wanted(const WindowInputs& inputs) {
  const std::size_t batches = std::clamp(inputs.prefetch_batches, kWindowMin, kWindowMax);
  const std::size_t lent = batches * std::max<std::size_t>(1, inputs.clients) * inputs.batch_bytes;
  return lent + std::max(inputs.batch_bytes, lent / 7 + 1);  // An eighth of the whole is a seventh of the rest.
}

std::size_t window_batches(const WindowInputs& inputs) {
  // Half as many again as can be in the making: batches that are finished out of order wait, and no executor idles.
  const std::size_t wanted = std::max(inputs.credits + inputs.credits / 2 + 2, inputs.prefetch_batches);
  const std::size_t batch_bytes =
      inputs.batch_bytes > 0 ? inputs.batch_bytes : std::max<std::size_t>(1, inputs.arena_bytes / 8);
  const std::size_t lendable = inputs.arena_bytes - keep_bytes(inputs.arena_bytes, batch_bytes);
  const std::size_t fitting = lendable / std::max<std::size_t>(1, inputs.clients) / batch_bytes;
  return std::clamp(std::min(wanted, fitting), kWindowMin, kWindowMax);
}

}  // namespace sluice::feeder
