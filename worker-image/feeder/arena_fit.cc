#include "worker-image/feeder/arena_fit.h"

#include <algorithm>
#include <utility>

namespace sluice::feeder {
namespace {

constexpr std::string_view kSetting =
    "the arena is spec.feeder.arena in a TrainingJob, else SLUICE_ARENA_BYTES for each rank";
constexpr double kWaitShare = 0.03;  // of the loop's time; below it no loop gains from a deeper window

std::string mebibytes(std::size_t bytes) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

}  // namespace

std::string arena_exceeds_memory(std::size_t arena_bytes, std::optional<std::size_t> limit_bytes) {
  if (!limit_bytes || arena_bytes + kFeederOwnBytes <= *limit_bytes) return "";
  return "an arena of " + mebibytes(arena_bytes) + " does not fit in the memory limit of " + mebibytes(*limit_bytes) +
         ": the feeder is killed when batches fill it. Raise spec.feeder.resources.limits.memory or lower "
         "spec.feeder.arena (SLUICE_ARENA_BYTES outside of a TrainingJob)";
}

std::string ArenaFit::told_of(const WindowInputs& inputs) {
  if (inputs.batch_bytes == 0) return "";
  wanted_bytes_ = arena_bytes_wanted(inputs);
  const std::size_t window = window_batches(inputs);
  const bool is_short = inputs.arena_bytes < wanted_bytes_;
  is_minimum_ = is_short && window == kWindowMin;
  if (!is_short || wanted_bytes_ / 2 < told_bytes_) return "";
  told_bytes_ = wanted_bytes_;
  const std::string loops = inputs.clients > 1 ? "each of " + std::to_string(inputs.clients) + " loops" : "the loop";
  return "the arena of " + mebibytes(inputs.arena_bytes) +
         " is small: " + std::to_string(std::max(inputs.prefetch_batches, kWindowMin)) + " batches of " +
         mebibytes(inputs.batch_bytes) + " ahead of " + loops + " take " + mebibytes(wanted_bytes_) + ", so that " +
         std::to_string(window) + " are made ahead" + (is_minimum_ ? ", the minimum" : "") + " (" +
         std::string(kSetting) + ")";
}

std::string ArenaFit::told_of_wait(double wait_seconds, double compute_seconds) {
  if (!is_minimum_ || wait_seconds <= kWaitShare * (wait_seconds + compute_seconds)) return "";
  if (std::exchange(told_wait_, true)) return "";
  return "the loop waits for batches, and its window is at the minimum of " + std::to_string(kWindowMin) +
         " because they fill the arena: make the arena " + mebibytes(wanted_bytes_) + " large, or lower batch_size (" +
         std::string(kSetting) + ")";
}

}  // namespace sluice::feeder
